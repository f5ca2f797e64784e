"""The utterances as a table: length, real-time factor, word errors, slowest frame. A click goes to one."""

from __future__ import annotations

from collections.abc import Sequence

from app.model.figures import own_ns, rtf_text
from app.views.table_twin import Table
from app.views.table_view import TableView
from pipelines.audio.word_errors import errors_of
from profiler.analysis.utterances import real_time_factor
from profiler.frames import FRAME_S
from profiler.plain import clock, counted, milliseconds

AROUND = 0.1
"""Share of an utterance's length that is shown before and after it."""


class UtterancesView(TableView):
    """What took long, and where words went wrong."""

    id = "utterances"
    title = "Utterances"

    def table(self) -> Table:
        """Return one row per utterance begun before the cursor."""
        headers = [
            self.tr(text)
            for text in (
                "#",
                "utterance",
                "RTF",
                "WER",
                "highest ms",
                "audio s",
                "errors",
                "words",
                "at",
                "at frame",
                "notes",
            )
        ]
        snapshot = self.snapshot
        rows: list[list[object]] = []
        if snapshot is None:
            return headers, rows
        own = own_ns(snapshot.track, 0, snapshot.cursor_frame)
        for number, one in enumerate(snapshot.session.utterances, start=1):
            end = min(one.first_frame + one.n_frames, snapshot.cursor_frame)
            if end <= one.first_frame:
                continue
            mine = own[one.first_frame : end]
            done = one.wall_ns is not None and end == one.end_frame
            rtf = real_time_factor(float(mine.sum()), one.audio_s) if done else None
            errors = errors_of(one)
            frame = one.first_frame + int(mine.argmax())
            notes = list(one.notes)
            if one.complete is False:
                notes.insert(0, self.tr("no sentence of the grammar"))
            rows.append(
                [
                    number,
                    one.name,
                    rtf_text(rtf),
                    None if errors is None or errors.rate is None else f"{100 * errors.rate:.1f} %",
                    milliseconds(float(mine.max()) * 1e-6),
                    f"{one.audio_s:.2f}",
                    None if errors is None else errors.errors,
                    None if errors is None else errors.words,
                    clock(one.first_frame * FRAME_S, 1),
                    frame,
                    "; ".join(notes),
                ]
            )
        return headers, rows

    def choose(self, row: Sequence[object]) -> None:
        """Select the utterance, in view of the charts."""
        if self.snapshot is None:
            return
        one = self.snapshot.session.utterances[int(str(row[0])) - 1]
        first, last = one.first_frame * FRAME_S, (one.first_frame + one.n_frames) * FRAME_S
        self.axis.go_to_range(first, last, AROUND)

    def summary(self) -> str:
        """Return one sentence: how many, their word errors."""
        if self.snapshot is None:
            return self.tr("No utterance yet.")
        number = counted(len(self.snapshot.session.utterances), "utterance", "utterances")
        found, of = self.snapshot.desk.errors, self.snapshot.desk.transcribed
        if found.rate is None:
            return self.tr("{0}; none in the scope has a reference.").format(number)
        wrong = counted(found.errors, "error", "errors")
        said = self.tr("{0}; {1} in {2}").format(number, wrong, counted(found.words, *found.unit))
        if of.utterances < of.of:
            said += self.tr("; {0} of {1} utterances have a transcript").format(*of)
        return f"{said}."
