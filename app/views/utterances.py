"""The utterances, their stages, or the words of the scope, as a table with what each cost. A click goes to one."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.model.configurations import differing, every
from app.model.pace import Slices
from app.model.playhead import Snapshot
from app.model.statistics import WHOLE, stage_names, stage_sums
from app.model.time_axis import TimeAxis
from app.views.table_twin import Table
from app.views.view import TableView
from app.views.word_costs_model import WordCost, word_costs
from app.views.words_model import AT_ONCE, align
from pipelines.audio.word_errors import SAME, errors_of
from pipelines.config import value_text
from profiler.analysis.recorded import real_time_factor
from profiler.arrays import F64, I64
from profiler.clock import FRAME_S
from profiler.plain import clock, counted, milliseconds, rtf_text
from profiler.session.model import Utterance

AROUND, AROUND_WORD = 0.1, 4.0  # Lengths of an utterance and of a word that are shown before and after it
STAGES, WORDS = "pivot", "word-costs"  # Its pages

UTTERANCE = ("#", "utterance", "RTF", "WER", "highest ms", "audio s", "errors", "words", "at", "at frame", "notes")
WORD = (
    *("word", "ms", "RTF", "error", "reference", "tokens / frame", "senones / frame"),
    *("utterance", "at s", "at frame"),
)


class UtterancesView(TableView):
    """What took long, and where words went wrong."""

    id = "utterances"
    title = "Utterances"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._shown: Table = (), ()
        self._words: tuple[WordCost, ...] = ()
        self._ahead: Slices[None] = Slices(self, lambda _: self._redraw())
        self.add_page(STAGES, self.tr("Stages"), self.tr("What each stage took of a frame, by utterance and settings"))
        self.add_page(WORDS, self.tr("Words"), self.tr("The words of the scope, the one that took longest first"))

    def draw(self, snapshot: Snapshot) -> None:
        """Renew the rows; where many utterances are still to be aligned, do so a little at a time."""
        make = {STAGES: self._by_stage, WORDS: self._by_word}.get(self.page, self._by_utterance)
        self._ahead.drop()
        self._shown = make(snapshot)
        super().draw(snapshot)
        if self.page == STAGES:
            self.set_note(self.tr("ms per 10 ms frame"), self.tr("ms per frame"))
        else:
            nouns = ("word", "words") if self.page == WORDS else ("utterance", "utterances")
            self.set_note(counted(len(self._shown[1]), *map(self.tr, nouns)))

    def settle(self) -> None:
        super().settle()
        if self._ahead.busy:
            self._ahead.finish()

    def clear(self) -> None:
        self._ahead.drop()
        self._shown, self._words = ((), ()), ()
        super().clear()

    def table(self) -> Table:
        return self._shown

    def _by_utterance(self, snapshot: Snapshot) -> Table:
        rows: list[list[object]] = []
        own = snapshot.track.own_ns(0, snapshot.cursor_frame)
        for number, one in enumerate(snapshot.session.utterances, start=1):
            end = min(one.end_frame, snapshot.cursor_frame)
            if end <= one.first_frame:
                continue
            mine = own[one.first_frame : end]
            done = one.wall_ns is not None and end == one.end_frame
            rtf = real_time_factor(float(mine.sum()), one.audio_s) if done else None
            times = rtf_text(rtf), milliseconds(float(mine.max()) * 1e-6)
            found = errors_of(one)
            errors, words, rate = (None,) * 3 if found is None else (found.errors, found.words, found.rate)
            wer = None if rate is None else f"{100 * rate:.1f} %"
            at = clock(one.first_frame * FRAME_S, 1), one.first_frame + int(mine.argmax())
            notes = [self.tr("no sentence of the grammar")] * (one.complete is False) + list(one.notes)
            row = number, one.name, times[0], wer, times[1], f"{one.audio_s:.2f}", errors, words, *at
            rows.append([*row, "; ".join(notes)])
        return [self.tr(text) for text in UTTERANCE], rows

    def _by_stage(self, snapshot: Snapshot) -> Table:
        titles = [self.tr(text) for text in ("utterance", "at", "configuration")]
        session, end = snapshot.session, snapshot.cursor_frame
        utterances = [one for one in session.utterances.in_time if one.first_frame < end]
        begins = np.array([one.first_frame for one in utterances], np.int64)
        ends = np.minimum([one.end_frame for one in utterances], end).astype(np.int64)
        whole, *names = stage_names(session, snapshot.track)
        sums = stage_sums(session, names, begins, end)
        dearest_first = np.argsort(-sums.sum(axis=1), kind="stable")
        names = [names[at] for at in dearest_first]
        frames = snapshot.track.own_ns(0, end), snapshot.track.wall_row[:end]
        own, wall = (np.concatenate([[0.0], np.cumsum(each)]) for each in frames)
        own, wall = own[ends] - own[begins], wall[ends] - wall[begins]
        # Other programs took as large a part of each stage of an utterance as of all of it.
        share = np.divide(own, wall, out=np.ones(len(own)), where=wall > 0)
        ns = np.concatenate([own[None], share * sums[dearest_first]])
        rows: list[list[object]] = []
        configurations = every(session)
        first = configurations[0][1] if configurations else {}
        settings = [(epochs, _changed(first, each)) for epochs, each in configurations]
        for epochs, text in settings if len(settings) > 1 else ():
            mine = [at for at, one in enumerate(utterances) if epochs.issuperset(one.epochs)]
            if mine:
                number = counted(len(mine), "utterance", "utterances")
                rows.append([number, "", text, *_means(ns[:, mine], ends[mine] - begins[mine])])
        for at, one in enumerate(utterances):
            text = next((text for epochs, text in settings if epochs.issuperset(one.epochs)), "")
            means = _means(ns[:, [at]], ends[[at]] - begins[[at]])
            rows.append([one.name, clock(one.first_frame * FRAME_S, 1), text, *means])
        if len(settings) < 2:
            titles, rows = titles[:2], [[*row[:2], *row[3:]] for row in rows]
        return [*titles, self.tr(whole), *names], rows

    def _by_word(self, snapshot: Snapshot) -> Table:
        session, scope = snapshot.session, snapshot.desk.scope
        self._words, left = word_costs(session, snapshot.track, scope.end, (scope.first, scope.last), AT_ONCE)
        if left:
            self._ahead.start(align(session, left, scope.end))
        rows: list[list[object]] = []
        for word in sorted(self._words, key=lambda word: -word.ms):
            error = "" if word.kind in (None, SAME) else self.tr(word.kind)
            counts = [None if each is None else f"{each:.0f}" for each in (word.tokens, word.senones)]
            at = word.utterance, clock(word.first_frame * FRAME_S, 2), word.first_frame
            rows.append([word.word, milliseconds(word.ms), rtf_text(word.rtf), error, word.reference, *counts, *at])
        return [self.tr(text) for text in WORD], rows

    def choose(self, row: Sequence[object]) -> None:
        """Show the word in the charts, or select the utterance, in view of them."""
        if self.page == WORDS:
            word = next((word for word in self._words if word.first_frame == row[-1]), None)
            if word is not None:
                first = word.first_frame * FRAME_S
                self.axis.point_at((first, first + word.frames * FRAME_S), AROUND_WORD)
        elif (one := self._utterance(row)) is not None:
            self.axis.go_to_range(one.first_frame * FRAME_S, one.end_frame * FRAME_S, AROUND)

    def _utterance(self, row: Sequence[object]) -> Utterance | None:
        if self.snapshot is None:
            return None
        utterances = self.snapshot.session.utterances
        if self.page != STAGES:
            return utterances[int(str(row[0])) - 1]
        return next((o for o in utterances if row[:2] == [o.name, clock(o.first_frame * FRAME_S, 1)]), None)

    def summary(self) -> str:
        if self.snapshot is None or not self._shown[1]:
            return self.tr("No word in range yet.") if self.page == WORDS else self.tr("No utterance yet.")
        return {STAGES: self._dearest_utterance, WORDS: self._dearest_word}.get(self.page, self._errors)()

    def _errors(self) -> str:
        assert self.snapshot is not None
        number = counted(len(self.snapshot.session.utterances), "utterance", "utterances")
        found, of = self.snapshot.desk.errors, self.snapshot.desk.transcribed
        if found.rate is None:
            return self.tr("{0}; none in the scope has a reference.").format(number)
        wrong = counted(found.errors, "error", "errors")
        said = self.tr("{0}; {1} in {2}").format(number, wrong, counted(found.words, *found.unit))
        if of.utterances < of.of:
            said += self.tr("; {0} of {1} utterances have a transcript").format(*of)
        return f"{said}."

    def _dearest_utterance(self) -> str:
        headers, rows = self._shown
        column = headers.index(self.tr(WHOLE))
        known = [row for row in rows if row[1] and row[column] != "–"]
        dearest = max(known, key=lambda row: float(str(row[column])), default=None)
        if dearest is None:
            return self.tr("No utterance yet.")
        return self.tr("{0} takes most: {1} ms per frame.").format(dearest[0], dearest[column])

    def _dearest_word(self) -> str:
        longest = max(self._words, key=lambda word: word.ms)
        text = self.tr("“{0}” takes longest: {1} ms for {2} s of audio.")
        text = text.format(longest.word, milliseconds(longest.ms), f"{longest.frames * FRAME_S:.2f}")
        known = [word for word in self._words if word.kind is not None]
        right, wrong = ([word for word in known if (word.kind == SAME) is kind] for kind in (True, False))
        if right and wrong:
            means = (sum(w.ms for w in words) / sum(w.frames for w in words) for words in (wrong, right))
            each = self.tr("A frame of a wrong word takes {0} ms, one of a right word {1} ms.")
            text += " " + each.format(*map(milliseconds, means))
        return text


def _means(ns: F64, frames: I64) -> list[str]:
    """Mean ms per frame of each row of times [rows, utterances] over their frames; a dash where there is no time."""
    whole = max(1, int(frames.sum()))
    return [milliseconds(total * 1e-6 / whole) if total > 0 else "–" for total in ns.sum(axis=1).tolist()]


def _changed(first: Mapping[str, object], settings: Mapping[str, object]) -> str:
    keys = sorted(differing(first, settings))
    return ", ".join(f"{key}={value_text(settings.get(key))}" for key in keys)
