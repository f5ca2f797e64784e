"""What the time of one stage consists of: a bar per part with its interval, and a sentence. It is always in sight."""

import math
from collections.abc import Sequence
from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QLineF, QRectF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QTextLayout
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.model.desk_snapshot import REASONS, DeskSnapshot, PartLine, StageLine
from app.style.plain_text import AT_LEFT, AT_RIGHT, fitting, set_tip, unbroken, write
from app.style.theme import font, theme
from profiler.analysis.categories import CATEGORY_NAMES, PART_NAMES, PREEMPTED_FROM
from profiler.clock import FRAME_S
from profiler.plain import clock, milliseconds, percent, rtf_text

TOLD_FROM = 0.005  # Share of the wall time from which other programs are mentioned next to the sum


def tr(text: str) -> str:
    return QCoreApplication.translate("Bars", text)


def sum_text(model: DeskSnapshot) -> str:
    text = tr("sum {0} ms · RTF {1}").format(milliseconds(model.own_ms), rtf_text(model.rtf))
    if model.other_share < TOLD_FROM:
        return text
    return tr("{0} · {1} ms with other programs").format(text, milliseconds(model.wall_ms))


def before_text(model: DeskSnapshot) -> str:
    """Say what the same speech took before, with the interval of the ratio; of a pinned range, what it took."""
    if model.baseline is not None:
        first, last = (clock(frame * FRAME_S, 2) for frame in model.baseline[:2])
        text = tr("pale: baseline {0} – {1}, {2} ms of its own speech")
        return text.format(first, last, milliseconds(model.baseline.own_ms))
    effect = model.pair
    if effect is None:
        return ""
    if not effect.figures:
        return tr("before: {0}").format(effect.headline)
    same = tr("same {0} s of speech").format(f"{effect.seconds:.0f}")
    return f"{same}: {effect.headline}" + (f" · {effect.needs}" if effect.needs else "")


def name_of(line: StageLine) -> str:
    return CATEGORY_NAMES.get(line.name, line.name)


def reasons(key: str) -> tuple[str, ...]:
    return tuple(tr(text) for text in REASONS[key])


def verdicts(line: StageLine) -> tuple[str, ...]:
    """What bounds a stage, with its grade, and shorter: compute · C, compute; wide and narrow columns say it alike."""
    of = line.verdict.removesuffix("-bound")
    graded = " · ".join(filter(None, (of, line.evidence)))
    if line.share is None and line.lane:
        return (tr("on the device · {0}").format(graded), tr("on the device"), tr("device"))
    return graded, of or line.evidence


def explanation(line: StageLine, stages: Sequence[StageLine], of_steps: bool = False) -> str:
    """A stage's share of its group and where its time went; of a group (not in `stages`) the largest part and stage."""
    if line not in stages:
        return _of_group(line, stages, tr("step") if of_steps else tr("10 ms frame"))
    texts = ("{0} of the time", "{0} of the operations", "{0} of the bytes")
    shares = zip(line.of_group, texts, strict=True)
    parts = [tr(text).format(percent(part)) for part, text in shares if part is not None]
    said = []
    if parts:
        said.append(tr("Within {0}, {1} takes {2}").format(line.group, line.name, ", ".join(parts)))
    if line.intensity is not None:
        # The verdict alone says what limits it.
        said.append(tr("{0} operations per byte").format(f"{line.intensity:.3g}"))
    besides = ""
    if line.other_ms >= PREEMPTED_FROM * (line.ms + line.other_ms):
        besides = tr("Other programs took {0} ms besides.").format(milliseconds(line.other_ms))
    return " ".join(filter(None, ["; ".join(said) + "." if said else "", line.sentence, besides]))


def _of_group(line: StageLine, stages: Sequence[StageLine], each: str) -> str:
    largest = max(line.parts, key=lambda part: part.share, default=None)
    whole = tr("All stages of {0} take {1} ms per {2}").format(name_of(line), milliseconds(line.ms), each)
    if largest is not None:
        part = PART_NAMES[largest.name], percent(largest.share)
        whole = tr("{0}; {1} is the largest part ({2})").format(whole, *part)
    whole += "."
    mine = [stage for stage in stages if stage.group == line.group]
    dearest = max(mine, key=lambda stage: stage.ms, default=None)
    return whole if dearest is None else f"{whole} {explanation(dearest, stages)}"


def tip(line: StageLine, stages: Sequence[StageLine], of_steps: bool = False) -> str:
    parts = [f"{PART_NAMES[part.name]} {share_text(part)}" for part in rows_of(line.parts)]
    return "\n".join(filter(None, [explanation(line, stages, of_steps), *parts]))


PART_ROW = 18  # Height of a part's row in pixels
NAMES = 162  # Width of the column of the parts' names
FIGURES = 96  # Width of the figures at the right: share and interval
WORTH_A_ROW = 0.005  # A part that is smaller, and cannot be larger, has no row


def group_color(group: str) -> str:
    if group in ("frontend", "search", "transfer", "overhead"):
        return group
    return "accent" if group == "scoring" else "muted"


def rows_of(parts: Sequence[PartLine]) -> list[PartLine]:
    return [part for part in parts if part.high >= WORTH_A_ROW]


def interval(part: PartLine) -> str:
    low, high = (f"{100 * end:.0f}" for end in (part.low, part.high))
    return "" if low == high else f"{low}–{high}"


def share_text(part: PartLine) -> str:
    """The share of a part with its interval: "41 % (30–51 %)"."""
    ends = interval(part)
    return percent(part.share) + (f" ({ends} %)" if ends else "")


def paint_strip(painter: QPainter, place: QRectF, parts: Sequence[PartLine]) -> None:
    """The parts side by side; a gap of a pixel keeps neighbours apart for any eye."""
    x = place.left()
    for part in parts:
        width = place.width() * part.share
        if width >= 1.0:
            bar = QRectF(x, place.top(), max(width - 1.0, 1.0), place.height())
            painter.fillRect(bar, QColor(theme().part[part.name]))
        x += width


def paint_rows(painter: QPainter, top: float, width: float, parts: Sequence[PartLine]) -> None:
    """A row per part from `top` down: its colour, name, bar with the interval, share."""
    tokens = theme()
    wide = width >= NAMES + FIGURES + 60
    figures = FIGURES if wide else 44
    room = max(20.0, width - NAMES - figures)
    painter.setFont(font(0.95))
    metrics = QFontMetricsF(painter.font())
    for index, part in enumerate(rows_of(parts)):
        row = QRectF(0, top + index * PART_ROW, width, PART_ROW)
        color, y = QColor(tokens.part[part.name]), row.center().y()
        painter.fillRect(QRectF(0, y - 4, 8, 8), color)
        painter.setPen(tokens.color("text"))
        write(painter, row.adjusted(14, 0, 0, 0), AT_LEFT, fitting(metrics, NAMES - 18, PART_NAMES[part.name]))
        painter.fillRect(QRectF(NAMES, y - 4, max(room * part.share, 1.0), 8), color)
        if interval(part):
            painter.setPen(QPen(tokens.color("text"), 1))
            low, high = (NAMES + room * end for end in (part.low, part.high))
            painter.drawLine(QLineF(low, y, high, y))
            for end in (low, high):
                painter.drawLine(QLineF(end, y - 3, end, y + 3))
        painter.setPen(tokens.color("text"))
        write(painter, row.adjusted(0, 0, -50 if wide else 0, 0), AT_RIGHT, percent(part.share))
        if wide:
            painter.setPen(tokens.color("muted"))
            write(painter, row, AT_RIGHT, interval(part))


HEAD = 24  # Height of the line with the stage's name and verdict
BELOW = 8  # Pixels between the parts and the sentence, and below it


class StagePanel(QWidget):
    """Name, verdict, parts and sentence of a stage."""

    def __init__(self) -> None:
        super().__init__()
        self._line: StageLine | None = None
        self._head = self.text = ""
        self.above = 0  # Pixels of the card that it leaves to what is above; a sentence without room ends in dots
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_line(self, line: StageLine | None, head: str, text: str) -> None:
        text = unbroken(text)
        if (line, head, text) != (self._line, self._head, self.text):
            height = self.sizeHint().height()
            self._line, self._head, self.text = line, head, text
            if self.sizeHint().height() != height:
                self.updateGeometry()
            self.update()

    def needed(self, width: int) -> int:
        if self._line is None:
            return 0
        parts = len(rows_of(self._line.parts)) * PART_ROW
        return HEAD + parts + BELOW + len(wrapped(self.text, width)) * _line_height()

    def sizeHint(self) -> QSize:
        parent = self.parentWidget()
        most = parent.height() - self.above if parent is not None else 10_000
        return QSize(200, min(self.needed(self.width()), max(most, HEAD + 2 * PART_ROW)))

    def paintEvent(self, event: QPaintEvent) -> None:
        line = self._line
        if line is None:
            return
        with QPainter(self) as painter:
            painter.setPen(QPen(theme().color("border"), 1))
            painter.drawLine(0, 0, self.width(), 0)
            painter.setPen(theme().color("text"))
            painter.setFont(font(1.0, strong=True))
            write(painter, QRectF(0, 2, self.width(), HEAD - 2), AT_LEFT, self._head)
            top = HEAD
            # Whole rows only; what has no room is in the tool tip.
            rows = rows_of(line.parts)[: max(0, (self.height() - HEAD) // PART_ROW)]
            paint_rows(painter, top, self.width(), rows)
            top += len(rows) * PART_ROW
            painter.setFont(font())
            painter.setPen(theme().color("text"))
            high = _line_height()
            room = max(0, (self.height() - top - 4) // high)
            lines = wrapped(self.text, self.width())
            set_tip(self, self.text if len(lines) > room else "")
            if len(lines) > room > 0:
                last = fitting(QFontMetricsF(font()), self.width(), " ".join(lines[room - 1 :]))
                lines = (*lines[: room - 1], last)
            for number, text in enumerate(lines[:room]):
                write(painter, QRectF(0, top + 4 + number * high, self.width(), high), AT_LEFT, text)


def _line_height() -> int:
    return math.ceil(QFontMetricsF(font()).lineSpacing())


@lru_cache(maxsize=8)
def wrapped(text: str, width: int) -> tuple[str, ...]:
    layout = QTextLayout(text, font())
    layout.beginLayout()
    found = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(width, 60))
        found.append(text[line.textStart() : line.textStart() + line.textLength()].rstrip())
    layout.endLayout()
    return tuple(found)
