"""The dialog of a picture: which views, size, theme and stretch of time, with a preview and the command.

What it shows is what `asrscope export` writes: the same code draws both, in a process of its own. Its choices begin
with what the window shows: views, theme, range in view, cursor, selection.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QDialog, QFormLayout, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from app.layout import NONE, REST, lay_out, named, styled
from app.model.pace import single_shot
from app.pictures.process import Job
from app.pictures.request import KINDS, THEMES, WORDS, PictureError, PictureRequest, is_range, range_text, read_range
from app.style.plain_text import Button, Elided, Label, describe, set_title, write
from app.style.theme import font, theme
from app.views import PICTURES, title_of
from app.widgets import CheckBox, ChoiceBox, NumberBox
from app.window.pictures.drawing import Drawing
from profiler.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


LEAST = QSize(420, 300)
FAINT = 0.35  # Opacity of a picture that no longer is what is wanted


class Preview(QWidget):
    """Shows an image with its aspect kept, and over it a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.image: QImage | None = None
        self.text = ""
        self._shrunk = QImage()
        self.setMinimumSize(LEAST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        describe(self, self.tr("Preview of the picture"))

    def show_image(self, image: QImage) -> None:
        self.image, self.text, self._shrunk = image, "", QImage()
        self.update()

    def say(self, text: str) -> None:
        self.text = text
        describe(self, description=text)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            if self.image is not None and not self.image.isNull():
                size = self.image.size().scaled(area.size().toSize(), Qt.AspectRatioMode.KeepAspectRatio)
                place = QRectF(0, 0, size.width(), size.height())
                place.moveCenter(area.center())
                pixels = (size.toSizeF() * self.devicePixelRatioF()).toSize()
                if self._shrunk.size() != pixels:
                    kept = Qt.AspectRatioMode.IgnoreAspectRatio
                    self._shrunk = self.image.scaled(pixels, kept, Qt.TransformationMode.SmoothTransformation)
                painter.setOpacity(FAINT if self.text else 1.0)
                painter.drawImage(place, self._shrunk)
                painter.setOpacity(1.0)
                painter.setPen(theme().color("border"))
                painter.drawRect(place)
            if self.text:
                painter.setFont(font(1.05))
                painter.setPen(theme().color("text"))
                flags = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
                write(painter, area.adjusted(30, 0, -30, 0), flags, self.text, broken=True)


SIZE: Final = QSize(1120, 700)
SIDE: Final = 300  # Width of the column of choices in pixels
SIZES: Final = ((1600, 1000), (1280, 720), (1000, 560), (800, 450), (640, 400))
LEAST_SIDE, MOST_SIDE = 120, 8000
SOON_MS: Final = 150  # A preview is drawn this long after the last change of a choice
LEAST_SCALE, MOST_SCALE = 0.25, 4.0  # Pixels per point of a preview
MOST_PIXELS = 4e6  # Of a preview that is drawn finer than it is shown
IN_WORDS: Final = (("--at", "the cursor at"), ("--range", "the stretch"), ("--select", "the selection"))


class Choices(QWidget):
    """What a picture shows and how it is drawn: the column next to the preview, which begins with `start`."""

    changed = Signal()
    refused = Signal(str)  # Why a length of a side is not taken

    def __init__(self, start: PictureRequest) -> None:
        super().__init__()
        self._start = start
        self.views = {view_id: self._check(title_of(view_id), view_id in start.ordered_views) for view_id in PICTURES}
        self.to_cursor = self._check("Only up to the cursor", start.at_s is not None)
        self.to_cursor.setVisible(start.at_s is not None)
        self.selected = {what: self._check(self._selection(what), True) for what in start.select}
        sizes = [*((f"{width} × {height}", (width, height)) for width, height in SIZES), (self.tr("other"), None)]
        self.size_box = ChoiceBox(self.tr("Size in points"), sizes)
        self.size_box.currentIndexChanged.connect(self._size_chosen)
        self.width_box, self.height_box = NumberBox(whole=True), NumberBox(whole=True)
        names = self.tr("Width"), self.tr("Height")
        for side, name, value in zip((self.width_box, self.height_box), names, start.size, strict=True):
            side.setRange(LEAST_SIDE, MOST_SIDE)
            side.setValue(value)
            describe(side, name)
            side.refused.connect(self._size_refused)
            side.valueChanged.connect(self.changed)
            side.valueChanged.connect(self._show_size)
        self._show_size()
        scales = [(self.tr("1 pixel per point"), 1.0)]
        scales += [(self.tr("{0} pixels per point").format(scale), float(scale)) for scale in (2, 3, 4)]
        self.scale_box = self._choice(self.tr("Scale of a PNG"), scales, start.scale)
        self.format_box = self._choice(self.tr("Format of the file"), [(kind.upper(), kind) for kind in KINDS], "png")
        themes = [(self.tr(name), name) for name in THEMES]
        self.theme_box = self._choice(self.tr("Theme of the picture"), themes, start.theme)
        self.range_box = QLineEdit("" if start.range_s is None else range_text(start.range_s))
        self.range_box.setPlaceholderText(self.tr("whole session"))
        describe(self.range_box, self.tr("Stretch shown, FROM..TO in seconds"))
        self.range_box.textChanged.connect(self.changed)
        self._lay_out(start)

    def _check(self, text: str, on: bool) -> CheckBox:
        box = CheckBox(self.tr(text))
        box.setChecked(on)
        box.toggled.connect(self.changed)
        return box

    def _choice(self, name: str, entries: Sequence[tuple[str, object]], chosen: object) -> ChoiceBox:
        box = ChoiceBox(name, entries)
        box.setCurrentIndex(box.findData(chosen))
        box.currentIndexChanged.connect(self.changed)
        return box

    def _selection(self, what: str) -> str:
        if is_range(what):
            return self.tr("Selection {0} s").format(what.replace("..", " – "))
        return self.tr("Explain {0}").format(one_line(what))

    def _lay_out(self, start: PictureRequest) -> None:
        buttons = lay_out(QHBoxLayout(), Button(self.tr("Whole session"), self.range_box.clear))
        if start.range_s is not None:
            show = partial(self.range_box.setText, range_text(start.range_s))
            buttons.addWidget(Button(self.tr("In view"), show))
        checks = (self.to_cursor, *self.selected.values())
        form = QFormLayout(verticalSpacing=10)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        for title, row in (
            (self.tr("Views"), lay_out(QVBoxLayout(), *self.views.values(), spacing=4)),
            (self.tr("Size"), self.size_box),
            ("", lay_out(QHBoxLayout(), (self.width_box, 1), Label("×"), (self.height_box, 1), spacing=6)),
            (self.tr("Format"), self.format_box),
            ("", self.scale_box),
            (self.tr("Theme"), self.theme_box),
            (self.tr("Time"), lay_out(QVBoxLayout(), self.range_box, buttons, *checks, spacing=4)),
        ):
            form.addRow(Label(title), row)
        self.setFixedWidth(SIDE)
        lay_out(QVBoxLayout(self), form, REST, margins=NONE)

    def wanted(self) -> PictureRequest:
        """What is chosen now; PictureError for a range that is none, or without any view."""
        views = tuple(view_id for view_id, box in self.views.items() if box.isChecked())
        if not views:
            raise PictureError(self.tr("Choose at least one view."))
        text = self.range_box.text().strip()
        return PictureRequest(
            views=views,
            size=self._size(),
            scale=float(self.scale_box.currentData()),
            theme=str(self.theme_box.currentData()),
            range_s=read_range(text, self.tr("The stretch")) if text else None,
            at_s=self._start.at_s if self.to_cursor.isChecked() else None,
            select=tuple(what for what, box in self.selected.items() if box.isChecked()),
            spectrogram=self._start.spectrogram and WORDS in views,
        )

    def _size(self) -> tuple[int, int]:
        return int(self.width_box.value()), int(self.height_box.value())

    def _size_refused(self, text: str) -> None:
        sentence = self.tr("A side must have {0} to {1} points; {2} is not taken.")
        self.refused.emit(sentence.format(LEAST_SIDE, MOST_SIDE, text))

    def _size_chosen(self) -> None:
        for side, value in zip((self.width_box, self.height_box), self.size_box.currentData() or (), strict=False):
            side.setValue(value)

    def _show_size(self) -> None:
        size = self._size()
        with QSignalBlocker(self.size_box):
            self.size_box.setCurrentIndex(SIZES.index(size) if size in SIZES else len(SIZES))

    @property
    def format(self) -> str:
        return str(self.format_box.currentData())


class PictureDialog(QDialog):
    """Chooses and writes pictures of a session; `start`: first choices, `ask`: gives the file of a format, or None."""

    written = Signal(Path)

    def __init__(
        self, session: Path, start: PictureRequest, ask: Callable[[PictureRequest, str], Path | None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Picture of {0}").format(session.name))
        self.resize(SIZE.boundedTo(parent.size() * 0.95))
        self._session, self._ask = session, ask
        self.drawing = Drawing(session, self)
        self.drawing.failed.connect(self._failed)
        self._soon = single_shot(self, SOON_MS, self._draw)
        self.preview = Preview()
        self.saved, self.command = styled(Elided(), muted=True), styled(Elided(), 0.9)
        self.choices = Choices(start)
        self.choices.changed.connect(self._changed)
        self.choices.refused.connect(self.saved.set_full)
        top = lay_out(QHBoxLayout(), (self.preview, 1), self.choices, spacing=14)
        clipboard = QGuiApplication.clipboard()
        self.copy_command = Button(self.tr("Copy command"), lambda: clipboard.setText(self.command.full))
        self.copy = Button(self.tr("Copy picture"), self._copy)
        self.save = named(Button(self.tr("Save…"), self._save), primary=True)
        self.save.setDefault(True)
        last = (self.copy_command, self.copy, self.save, Button(self.tr("Close"), self.close))
        for button in last:
            button.setAutoDefault(button is self.save)
        below = lay_out(QHBoxLayout(), (self.command, 1), *last)
        lay_out(QVBoxLayout(self), (top, 1), self.saved, below, spacing=12, margins=(14, 14, 14, 12))
        self._changed()

    def _changed(self) -> None:
        try:
            wanted = self.choices.wanted()
        except PictureError as error:
            self._soon.stop()
            self._refuse(str(error))
            return
        self._allow(True)
        self.choices.scale_box.setEnabled(self.choices.format == "png")  # the others have no pixels
        self.command.set_full(wanted.command(self._session.name, self.choices.format))
        self._soon.start()

    def _allow(self, possible: bool) -> None:
        for button in (self.copy_command, self.copy, self.save):
            button.setEnabled(possible)

    def _refuse(self, why: str) -> None:
        self.preview.say(why)
        self._allow(False)

    def _draw(self) -> None:
        try:
            wanted = self.choices.wanted()
        except PictureError:
            return
        self.drawing.ask(Job(wanted, scale=self._scale(*wanted.size)), self._drawn)
        if self.preview.image is None:
            self.preview.say(self.tr("Drawing …"))

    def _scale(self, width: int, height: int) -> float:
        """Pixels per point of a preview: at least one unless too large, as thinner lines would not be drawn."""
        room, ratio = self.preview.size(), self.devicePixelRatioF()
        shown = ratio * min(room.width() / width, room.height() / height)
        affordable = min(1.0, math.sqrt(MOST_PIXELS / (width * height)))
        return min(max(shown, affordable, LEAST_SCALE), MOST_SCALE)

    def _drawn(self, png: bytes) -> None:
        self.preview.show_image(QImage.fromData(png))
        self._allow(True)

    def _failed(self, why: str) -> None:
        for option, name in IN_WORDS:
            why = why.replace(option, self.tr(name))
        self._refuse(why[:1].upper() + why[1:])

    def _save(self) -> None:
        wanted = self.choices.wanted()
        target = self._ask(wanted, self.choices.format)
        if target is not None:
            self.preview.say(self.tr("Writing {0} …").format(one_line(target.name)))
            self._allow(False)
            self.drawing.ask(Job(wanted, str(target.absolute())), lambda _: self._written(target))

    def _written(self, path: Path) -> None:
        self.written.emit(path)
        self.saved.set_full(self.tr("Saved: {0}").format(path))
        self._allow(True)
        self._draw()

    def _copy(self) -> None:
        clipboard = QGuiApplication.clipboard()
        self.drawing.ask(Job(self.choices.wanted()), lambda png: clipboard.setImage(QImage.fromData(png)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.preview.image is not None:
            self._soon.start()

    def done(self, result: int) -> None:
        self._soon.stop()
        self.drawing.stop()
        super().done(result)
