"""The recognised words by what they cost: time, tokens and senones of each, right or wrong. A click goes to one."""

from __future__ import annotations

from collections.abc import Sequence

from app.model.figures import rtf_text
from app.model.pace import Slices
from app.model.playhead import Snapshot
from app.model.time_axis import TimeAxis
from app.views.table_twin import Table
from app.views.table_view import TableView
from app.views.word_costs_model import WordCost, word_costs
from app.views.words_model import Left, align
from pipelines.audio.word_errors import SAME
from profiler.frames import FRAME_S
from profiler.plain import clock, counted, milliseconds

AT_ONCE = 16
"""Utterances that a drawing waits for; more are aligned meanwhile."""

AROUND = 4.0
"""Lengths of a word that are shown before and after it."""


class WordCostsView(TableView):
    """Which words make the search work, and whether they are the ones that it gets wrong."""

    id = "word-costs"
    title = "Cost per word"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self._words: tuple[WordCost, ...] = ()
        self._left: Left = ()
        self._ahead: Slices[None] = Slices(self, lambda _: self._redraw())

    def draw(self, snapshot: Snapshot) -> None:
        """Renew the rows; where many utterances are still to be aligned, do so a little at a time."""
        session, scope = snapshot.session, snapshot.desk.scope
        within = scope.first, scope.last
        self._words, self._left = word_costs(session, snapshot.track, scope.end, within, AT_ONCE)
        if self._left:
            self._ahead.start(align(session, self._left, scope.end))
        else:
            self._ahead.drop()
        super().draw(snapshot)
        self.set_note(counted(len(self._words), "word", "words"))

    def settle(self) -> None:
        super().settle()
        if self._ahead.busy:
            self._ahead.finish()

    def clear(self) -> None:
        self._ahead.drop()
        self._words, self._left = (), ()
        super().clear()

    def table(self) -> Table:
        """Return one row per word, the one whose frames take longest first."""
        titles = (
            *("word", "ms", "RTF", "error", "reference", "tokens / frame", "senones / frame"),
            *("utterance", "at s", "at frame"),
        )
        ranked = sorted(self._words, key=lambda word: -word.ms)
        return [self.tr(text) for text in titles], [
            [
                word.word,
                milliseconds(word.ms),
                rtf_text(word.rtf),
                "" if word.kind in (None, SAME) else self.tr(word.kind),
                word.reference,
                None if word.tokens is None else f"{word.tokens:.0f}",
                None if word.senones is None else f"{word.senones:.0f}",
                word.utterance,
                clock(word.first_frame * FRAME_S, 2),
                word.first_frame,
            ]
            for word in ranked
        ]

    def choose(self, row: Sequence[object]) -> None:
        """Show the word in the charts."""
        frame = row[-1]
        word = next((word for word in self._words if word.first_frame == frame), None)
        if word is None:
            return
        first = word.first_frame * FRAME_S
        self.axis.point_at((first, first + word.frames * FRAME_S), AROUND)

    def summary(self) -> str:
        """Return one sentence: the most expensive word, and the cost of wrong words relative to right ones."""
        if not self._words:
            return self.tr("No word in range yet.")
        longest = max(self._words, key=lambda word: word.ms)
        text = self.tr("“{0}” takes longest: {1} ms for {2} s of audio.").format(
            longest.word, milliseconds(longest.ms), f"{longest.frames * FRAME_S:.2f}"
        )
        right, wrong = (
            [word for word in self._words if word.kind is not None and (word.kind == SAME) is kind]
            for kind in (True, False)
        )
        if right and wrong:
            means = (milliseconds(_per_frame(words)) for words in (wrong, right))
            text += " " + self.tr("A frame of a wrong word takes {0} ms, one of a right word {1} ms.").format(*means)
        return text


def _per_frame(words: Sequence[WordCost]) -> float:
    return sum(word.ms for word in words) / sum(word.frames for word in words)
