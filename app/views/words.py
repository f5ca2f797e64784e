"""Speech and words: the waveform with the recognised words at their time, and the sentence at the playhead below.

A spectrogram can be shown under the waveform; it is read from the sound's file as it comes into view. A page in place
of the chart has the confusion pairs.
"""

import math
from itertools import islice
from typing import Final

from PySide6.QtCore import QModelIndex, QRectF

from app.charts.items import Remark
from app.charts.legend import ReadoutLine
from app.model.pace import Slices
from app.model.playhead import Snapshot
from app.model.spectrum import KEPT, TOP_HZ, Spectra, chunks_of
from app.model.time_axis import TimeAxis
from app.style.plain_text import describe
from app.views.chart import ChartView
from app.views.speech import MARKS, THICK, Marks, Spectrogram, SpokenItem, Wave
from app.views.table_twin import Table, TableTwin
from app.views.word_costs_model import Confusion, confusions
from app.views.word_places import Sentence, written_columns
from app.views.words_model import AT_ONCE, Spoken, WordsModel, align, current_of, words_model
from pipelines.audio.word_errors import SAME, ErrorCount
from profiler.analysis.lod.columns import column_edges
from profiler.clock import FRAME_S
from profiler.plain import clock, counted

AROUND = 4.0  # Lengths of a word that are shown before and after it
NONE: Final = "–"  # In place of the word that an insertion or a deletion lacks


class Confusions(TableTwin):
    """Reference, hypothesis, how often, seconds; in the scope."""

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__()
        self._axis = axis
        self._found: tuple[Confusion, ...] = ()
        self._snapshot: Snapshot | None = None
        self._ahead: Slices[None] = Slices(self, lambda _: self._renew())
        for signal in (self.clicked, self.activated):
            signal.connect(self._choose)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        """Show the pairs of a snapshot; None shows none. Where many utterances are to be aligned, a few at a time."""
        self._snapshot = snapshot
        self._ahead.drop()
        self._renew()

    def settle(self) -> None:
        if self._ahead.busy:
            self._ahead.finish()

    def _renew(self) -> None:
        self._found, shown = (), self._snapshot
        if shown is not None:
            scope = shown.desk.scope
            of = shown.session, shown.track, scope.end
            self._found, left = confusions(*of, (scope.first, scope.last), AT_ONCE)
            if left:
                self._ahead.start(align(shown.session, left, scope.end))
        self.show_rows(self.table())
        describe(self, self.tr("Confusion pairs"), self.summary())

    def table(self) -> Table:
        headers = [self.tr(text) for text in ("reference", "hypothesis", "count", "seconds", "first at")]
        rows: list[list[object]] = []
        for one in self._found:
            seconds = None if one.wall_s is None else f"{one.wall_s:.3f}"
            at = clock(one.places[0][0] * FRAME_S, 2)
            rows.append([one.reference or NONE, one.hypothesis or NONE, one.count, seconds, at])
        return headers, rows

    def summary(self) -> str:
        if not self._found:
            return self.tr("No word error in range.")
        first, number = self._found[0], sum(one.count for one in self._found)
        errors = counted(number, self.tr("word error"), self.tr("word errors"))
        pairs = counted(len(self._found), self.tr("pair"), self.tr("pairs"))
        times = counted(first.count, self.tr("time"), self.tr("times"))
        text = self.tr("{0} in {1}; the most frequent is {2} → {3}, {4}.")
        return text.format(errors, pairs, first.reference or NONE, first.hypothesis or NONE, times)

    def _choose(self, index: QModelIndex) -> None:
        """Go to the occurrence after the one that is marked; from elsewhere, to the first."""
        row = self.cells.row(index.row())
        pair = next((one for one in self._found if [one.reference or NONE, one.hypothesis or NONE] == row[:2]), None)
        if pair is None:
            return
        places = [(first * FRAME_S, last * FRAME_S) for first, last in pair.places]
        at = places.index(self._axis.pointed) if self._axis.pointed in places else -1
        self._axis.point_at(places[(at + 1) % pair.count], AROUND)


REST_MS = 100  # A hand that pans and zooms rests for so long before utterances are aligned
SHOWN_EVERY = 256  # Utterances that are aligned between two drawings
LONGEST_S = 120.0  # Most seconds in view of which a spectrogram is drawn
READ_AT_ONCE = 4  # Chunks of spectra that are read between two drawings
WAVE_SHARE = 0.4  # Of the height of the sound that the waveform takes when there is a spectrogram


class WordsView(ChartView[WordsModel]):
    """What was said, what was recognised, and when."""

    id = "words"
    title = "Speech and words"

    def __init__(self, axis: TimeAxis) -> None:
        super().__init__(axis)
        self.spoken = SpokenItem(self.plot)
        self.wave, self.marks = Wave(self.plot), Marks(self.plot)
        self.sentence = Sentence()
        self.column.addWidget(self.sentence)
        self._said: tuple[int, ErrorCount | None] | None = None
        self._ahead: Slices[None] = Slices(self, lambda _: self._redraw())
        self.spectrogram, self.remark = Spectrogram(self.plot), Remark(self.plot)
        self.spectra = Spectra()
        self._reading: Slices[None] = Slices(self, lambda _: self._redraw())
        self.with_spectrogram = False
        self.confusions = Confusions(axis)
        tip = self.tr("Which words were recognised in place of which, as a table")
        self.shows_confusions = self.add_page("confusions", self.tr("Confusions"), tip, self.confusions)

    def set_spectrogram(self, on: bool) -> None:
        self.with_spectrogram = on
        self._reading.drop()
        if self.snapshot is not None:
            self.draw(self.snapshot)

    def reduce(self, snapshot: Snapshot, columns: int, visible: tuple[float, float]) -> WordsModel:
        of = snapshot.session, snapshot.track, snapshot.end_frame
        return words_model(*of, visible, columns, snapshot.cursor_frame, AT_ONCE, self.axis.selected_frames)

    def scroll_drawing(self, snapshot: Snapshot) -> bool:
        """Move the words on, in chart and sentence, while the same utterance is the one at the cursor."""
        model = self._model
        if model is None or not super().scroll_drawing(snapshot):
            return False
        at_s, selected = snapshot.cursor_frame * FRAME_S, self.axis.selected_frames
        if current_of(model.spoken, at_s, self.axis.visible, selected) != model.current:
            return False
        self.sentence.show_spoken(model.now, at_s)
        before = self.spoken.areas()
        self.spoken.lay_out()
        return self.spoken.areas() == before

    def draw(self, snapshot: Snapshot) -> None:
        """Draw; where many utterances are still to be aligned, do so once the hand rests."""
        super().draw(snapshot)
        model = self._model
        assert model is not None
        said = None if model.now is None else (model.now.number, model.now.count)
        if said != self._said:
            # Words come seldom, and what is said of them is read beside them.
            self._said = said
            self.show_texts(model)
        if model.left:
            self._ahead.start(align(snapshot.session, model.left[-SHOWN_EVERY:], snapshot.end_frame), REST_MS)
        else:
            self._ahead.drop()

    def clear(self) -> None:
        self._ahead.drop()
        self._reading.drop()
        self.spectra.forget()
        self.confusions.show_snapshot(None)
        super().clear()

    def settle(self) -> None:
        super().settle()
        for work in (self._ahead, self._reading):
            while work.busy:
                work.finish()
        self.confusions.settle()

    def _renew_texts(self) -> None:
        super()._renew_texts()
        if self.snapshot is not None and self.shows_confusions.isChecked():
            self.confusions.show_snapshot(self.snapshot)

    def show_model(self, model: WordsModel | None) -> None:
        self.spoken.set_model(model)
        sound, words = self.spoken.areas()
        height = float(self.plot.plot_size[1])
        self.plot.set_height_range(0.0, height)
        share = WAVE_SHARE if self.with_spectrogram and model is not None else 1.0
        wave = QRectF(sound.left(), sound.top(), sound.width(), round(share * sound.height()))
        self.wave.show_model(model, wave, height)
        self.marks.show_model(model, sound.bottom() + MARKS - 1 - THICK // 2, height)
        self._show_spectrogram(model, sound.adjusted(0, wave.height() + 1, 0, 0), height)
        if model is None:
            self.sentence.show_spoken(None)
        else:
            self.sentence.show_spoken(model.now, model.at_frame * FRAME_S)
            self.overlay.set_floor(words.height())

    def _show_spectrogram(self, model: WordsModel | None, area: QRectF, height: float) -> None:
        """Show what was read of the sound in view, and read the next chunks of it."""
        self.spectrogram.area = QRectF()
        self.spectrogram.show_nothing()
        self.remark.show_text("", area)
        self.plot.set_ticks(())
        if model is None or self.snapshot is None or not self.with_spectrogram:
            return
        if model.last_s - model.first_s > LONGEST_S:
            text = self.tr("The spectrogram is shown when at most {0} minutes are in view.")
            self.remark.show_text(text.format(round(LONGEST_S / 60)), area)
            return
        session = self.snapshot.session
        utterances = (one for one in session.utterances if one.done or session.state != "recording")
        first, last = model.first_s / FRAME_S, model.last_s / FRAME_S
        chunks = list(islice(chunks_of(utterances, int(first), math.ceil(last)), KEPT))
        missing = self.spectra.missing(chunks)
        if missing and not self._reading.busy:
            self._reading.start(self.spectra.read(missing[:READ_AT_ONCE]))
        self.remark.show_text(self.spectra.reason(chunks), area)
        if not self.remark.text:
            levels = self.spectra.levels(chunks, column_edges(first, last, len(model.low)))
            self.spectrogram.show_levels(levels, (model.first_s, model.last_s), area, height)
            ends = (TOP_HZ, area.top() + 4), (0.0, area.bottom() - 4)
            self.plot.set_ticks([(height - y, self.tr("{0} kHz").format(f"{hz / 1000:.0f}")) for hz, y in ends])

    def show_texts(self, model: WordsModel) -> None:
        parts = [""]
        if (now := model.now) is not None:
            parts = [now.name, self.tr("{0} of {1}").format(now.number, model.utterances), self._errors(now)]
        shown, of = self.spoken.shown_of()
        texts = [" · ".join(parts[at:]) for at in range(len(parts))]
        # Where there is little room, first the name goes, then the number, last what there was no room for.
        left_out = self.tr("{0} of {1} words shown").format(shown, of)
        self.set_note(*(f"{text} · {left_out}" for text in texts if shown < of), *texts[-1:] if shown < of else texts)

    def readout(self, model: WordsModel, second: float) -> list[ReadoutLine]:
        over = self.spoken.word_at(self.plot.mouse)
        at_s = second if over is None else over.middle_s
        for spoken in model.spoken:
            if not spoken.first_s <= at_s < spoken.last_s:
                continue
            lines = [ReadoutLine(clock(second, 2), spoken.name, strong=True)]
            if (hertz := self.spectrogram.frequency_at(self.plot.mouse.y())) is not None:
                lines.append(ReadoutLine(self.tr("frequency"), f"{hertz / 1000:.1f} kHz"))
            for title, row in ((self.tr("reference"), spoken.said), (self.tr("hypothesis"), spoken.heard)):
                words = [t for t in row or () if t.first_s <= at_s < t.last_s]
                if words:
                    kind = "" if words[0].kind == SAME else f" ({self.tr(words[0].kind)})"
                    lines.append(ReadoutLine(title, " ".join(t.text for t in words) + kind))
            if spoken.complete is False:
                lines.append(ReadoutLine("", self.tr("no sentence of the grammar")))
            return [*lines, *(ReadoutLine("", note) for note in spoken.notes)]
        return []

    def summary(self) -> str:
        model = self.model()
        if model is None or (now := model.now) is None:
            return self.tr("No speech in view yet.")
        heard = " ".join(token.text for token in now.heard) or self.tr("empty")
        text = self.tr("Utterance {0} ({1}): hypothesis “{2}”; {3}.")
        said = text.format(now.number, now.name, heard, self._errors(now))
        return " ".join([said, *(f"{note}." for note in now.notes)])

    def table(self) -> Table:
        headers = [self.tr(t) for t in ("utterance", "at s", "reference", "hypothesis", "error")]
        model = self.model()
        rows: list[list[object]] = []
        for spoken in model.spoken if model is not None else ():
            for above, below, kind, second in written_columns(spoken):
                error = "" if kind == SAME else self.tr(kind)
                rows.append([spoken.name, f"{second:.2f}", above, below, error])
        return headers, rows

    def _errors(self, spoken: Spoken) -> str:
        count = spoken.count
        if count is None and spoken.said is None:
            text = self.tr("no reference")
        elif count is None:
            text = self.tr("not scored") if spoken.columns is not None else self.tr("not aligned")
        elif not (count.errors or count.words):
            text = self.tr("no word to compare yet")
        else:
            wrong = (
                self.tr("no error") if not count.errors else counted(count.errors, self.tr("error"), self.tr("errors"))
            )
            text = self.tr("{0} in {1}").format(wrong, f"{count.words} {count.unit[count.words != 1]}")
            text += self.tr(" so far") if spoken.partial else ""
        return self.tr("no sentence of the grammar, {0}").format(text) if spoken.complete is False else text
