"""The dialog of a picture: which views, size, theme and stretch of time, with a preview and the command.

What it shows is what `asrscope export` writes: the same code draws both, in a process of its own. Its choices begin
with what the window shows: views, theme, range in view, cursor, selection.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QDialog, QFormLayout, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from app.layout import NONE, REST, lay_out
from app.model.pace import single_shot
from app.pictures.request import WORDS, PictureError, PictureRequest, is_range, range_text, read_range
from app.style.plain_text import Button, Elided, Label, describe, set_title, write
from app.style.theme import font, theme
from app.views import PICTURES, title_of
from app.widgets import CheckBox, ChoiceBox, NumberBox
from app.window.pictures.drawing import Drawing
from profiler.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable


LEAST = QSize(420, 300)
FAINT = 0.35  # Opacity of a picture that no longer is what is wanted


class Preview(QWidget):
    """Shows an image with its aspect kept."""

    def __init__(self) -> None:
        super().__init__()
        self._image: QImage | None = None
        self._shrunk = QImage()
        self._text = ""
        self._old = False
        self.setMinimumSize(LEAST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        describe(self, self.tr("Preview of the picture"))

    @property
    def image(self) -> QImage | None:
        return self._image

    @property
    def text(self) -> str:
        return self._text

    def show_image(self, image: QImage) -> None:
        self._image, self._text, self._old = image, "", False
        self._shrunk = QImage()
        self.update()

    def say(self, text: str) -> None:
        self._text, self._old = text, True
        describe(self, description=text)
        self.update()

    def _of_size(self, image: QImage, size: QSize) -> QImage:
        """Return the image scaled to `size` points, in device pixels."""
        pixels = (size.toSizeF() * self.devicePixelRatioF()).toSize()
        if self._shrunk.size() != pixels:
            kept = Qt.AspectRatioMode.IgnoreAspectRatio
            self._shrunk = image.scaled(pixels, kept, Qt.TransformationMode.SmoothTransformation)
        return self._shrunk

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw picture and sentence."""
        with QPainter(self) as painter:
            area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            if self._image is not None and not self._image.isNull():
                size = self._image.size().scaled(area.size().toSize(), Qt.AspectRatioMode.KeepAspectRatio)
                place = QRectF(0, 0, size.width(), size.height())
                place.moveCenter(area.center())
                painter.setOpacity(FAINT if self._old else 1.0)
                painter.drawImage(place, self._of_size(self._image, size))
                painter.setOpacity(1.0)
                painter.setPen(theme().color("border"))
                painter.drawRect(place)
            if self._text:
                painter.setFont(font(1.05))
                painter.setPen(theme().color("text"))
                flags = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
                write(painter, area.adjusted(30, 0, -30, 0), flags, self._text, broken=True)


SIZE: Final = QSize(1120, 700)
SIDE: Final = 300  # Width of the column of choices in pixels

SIZES: Final = ((1600, 1000), (1280, 720), (1000, 560), (800, 450), (640, 400))
SCALES: Final = (1.0, 2.0, 3.0, 4.0)
LEAST_SIDE, MOST_SIDE = 120, 8000

SOON_MS: Final = 150  # A preview is drawn this long after the last change of a choice
LEAST_SCALE, MOST_SCALE = 0.25, 4.0  # Pixels per point of a preview

FORMATS = ("png", "svg", "pdf")

MOST_PIXELS = 4e6  # Of a preview that is drawn finer than it is shown


class PictureDialog(QDialog):
    """Chooses and writes pictures of a session; `start`: what the window shows, and so the first choices.

    `ask`: asks for the file of a picture in a format (png, svg or pdf); None if that was given up.
    """

    written = Signal(Path)

    def __init__(
        self, session: Path, start: PictureRequest, ask: Callable[[PictureRequest, str], Path | None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        set_title(self, self.tr("Picture of {0}").format(session.name))
        self.resize(SIZE.boundedTo(parent.size() * 0.95))
        self._session, self._start, self._ask = session, start, ask
        self._copying = 0
        self.drawing = Drawing(session, self)
        self.drawing.drawn.connect(self._drawn)
        self.drawing.written.connect(self._written)
        self.drawing.failed.connect(self._failed)
        self._soon = single_shot(self, SOON_MS, self._draw)
        self.preview = Preview()
        self.saved = Elided()
        self.saved.setObjectName("muted")
        self.command = Elided()
        self.command.setFont(font(0.9))
        self._make_choices(start)
        self._lay_out()
        self._changed()

    # -- construction ----------------------------------------------------------------------

    def _make_choices(self, wanted: PictureRequest) -> None:
        self.views = {view_id: CheckBox(self.tr(title_of(view_id))) for view_id in PICTURES}
        for view_id, box in self.views.items():
            box.setChecked(view_id in wanted.ordered_views)
        sizes = [*((f"{size[0]} × {size[1]}", size) for size in SIZES), (self.tr("other"), None)]
        self.size_box = ChoiceBox(self.tr("Size in points"), sizes)
        self.width_box, self.height_box = NumberBox(whole=True), NumberBox(whole=True)
        for side, name in ((self.width_box, self.tr("Width")), (self.height_box, self.tr("Height"))):
            side.setRange(LEAST_SIDE, MOST_SIDE)
            describe(side, name)
            side.refused.connect(self._size_refused)
        self.width_box.setValue(wanted.size[0])
        self.height_box.setValue(wanted.size[1])
        self._show_size()
        scales = [(self._scale_text(scale), scale) for scale in SCALES]
        self.scale_box = ChoiceBox(self.tr("Scale of a PNG"), scales)
        self.scale_box.setCurrentIndex(SCALES.index(wanted.scale))
        formats = [(suffix.upper(), suffix) for suffix in FORMATS]
        self.format_box = ChoiceBox(self.tr("Format of the file"), formats)
        themes = [(self.tr("light"), "light"), (self.tr("dark"), "dark")]
        self.theme_box = ChoiceBox(self.tr("Theme of the picture"), themes)
        self.theme_box.setCurrentIndex(self.theme_box.findData(wanted.theme))
        self.range_box = QLineEdit()
        self.range_box.setPlaceholderText(self.tr("whole session"))
        describe(self.range_box, self.tr("Stretch shown, FROM..TO in seconds"))
        if wanted.range_s is not None:
            self.range_box.setText(range_text(wanted.range_s))
        self.to_cursor = CheckBox(self.tr("Only up to the cursor"))
        self.to_cursor.setChecked(wanted.at_s is not None)
        self.to_cursor.setVisible(wanted.at_s is not None)
        self.selected = {what: CheckBox(self._selection(what)) for what in wanted.select}
        for box in self.selected.values():
            box.setChecked(True)
        for box in [*self.views.values(), self.to_cursor, *self.selected.values()]:
            box.toggled.connect(self._changed)
        self.size_box.currentIndexChanged.connect(self._size_chosen)
        for sides in (self.width_box, self.height_box):
            sides.valueChanged.connect(self._changed)
            sides.valueChanged.connect(self._show_size)
        for choices in (self.scale_box, self.theme_box, self.format_box):
            choices.currentIndexChanged.connect(self._changed)
        self.range_box.textChanged.connect(self._changed)

    def _scale_text(self, scale: float) -> str:
        pixels = self.tr("pixel") if scale == 1 else self.tr("pixels")
        return self.tr("{0} {1} per point").format(f"{scale:g}", pixels)

    def _selection(self, what: str) -> str:
        if is_range(what):
            return self.tr("Selection {0} s").format(what.replace("..", " – "))
        return self.tr("Explain {0}").format(one_line(what))

    def _lay_out(self) -> None:
        views = lay_out(QVBoxLayout(), *self.views.values(), spacing=4)
        sides = lay_out(QHBoxLayout(), (self.width_box, 1), Label("×"), (self.height_box, 1), spacing=6)
        buttons = QHBoxLayout()
        self.whole = Button(self.tr("Whole session"))
        self.whole.clicked.connect(self.range_box.clear)
        buttons.addWidget(self.whole)
        if self._start.range_s is not None:
            self.in_view = Button(self.tr("In view"))
            text = range_text(self._start.range_s)
            self.in_view.clicked.connect(lambda: self.range_box.setText(text))
            buttons.addWidget(self.in_view)
        checks = (self.to_cursor, *self.selected.values())
        stretch = lay_out(QVBoxLayout(), self.range_box, buttons, *checks, spacing=4)
        form = QFormLayout()
        form.setVerticalSpacing(10)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        for title, row in (
            (self.tr("Views"), views),
            (self.tr("Size"), self.size_box),
            ("", sides),
            (self.tr("Format"), self.format_box),
            ("", self.scale_box),
            (self.tr("Theme"), self.theme_box),
            (self.tr("Time"), stretch),
        ):
            form.addRow(Label(title), row)
        side = QWidget()
        side.setFixedWidth(SIDE)
        lay_out(QVBoxLayout(side), form, REST, margins=NONE)
        top = lay_out(QHBoxLayout(), (self.preview, 1), side, spacing=14)
        self.copy_command = Button(self.tr("Copy command"))
        self.copy_command.clicked.connect(self._copy_command)
        self.copy = Button(self.tr("Copy picture"))
        self.copy.clicked.connect(self._copy)
        self.save = Button(self.tr("Save…"))
        self.save.setProperty("primary", True)
        self.save.setDefault(True)
        self.save.clicked.connect(self._save)
        self.end = Button(self.tr("Close"))
        self.end.clicked.connect(self.close)
        last = (self.copy_command, self.copy, self.save, self.end)
        for button in last:
            button.setAutoDefault(button is self.save)
        below = lay_out(QHBoxLayout(), (self.command, 1), *last)
        lay_out(QVBoxLayout(self), (top, 1), self.saved, below, spacing=12, margins=(14, 14, 14, 12))

    # -- what is wanted --------------------------------------------------------------------

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
        self.saved.set_full(sentence.format(LEAST_SIDE, MOST_SIDE, text))

    def _size_chosen(self) -> None:
        size = self.size_box.currentData()
        if size is not None:
            self.width_box.setValue(size[0])
            self.height_box.setValue(size[1])

    def _show_size(self) -> None:
        size = self._size()
        with QSignalBlocker(self.size_box):
            self.size_box.setCurrentIndex(SIZES.index(size) if size in SIZES else len(SIZES))

    def _changed(self) -> None:
        try:
            wanted = self.wanted()
        except PictureError as error:
            self._soon.stop()
            self._refuse(str(error))
            return
        self._allow(True)
        self.scale_box.setEnabled(self.format == "png")  # the others have no pixels
        self.command.set_full(wanted.command(self._session.name, self.format))
        self._soon.start()

    def _allow(self, possible: bool) -> None:
        for button in (self.copy_command, self.copy, self.save):
            button.setEnabled(possible)

    def _refuse(self, why: str) -> None:
        self.preview.say(why)
        self._allow(False)

    # -- drawing ---------------------------------------------------------------------------

    def _draw(self) -> None:
        try:
            wanted = self.wanted()
        except PictureError:
            return
        self.drawing.preview(wanted, self._scale(*wanted.size))
        if self.preview.image is None:
            self.preview.say(self.tr("Drawing …"))

    def _scale(self, width: int, height: int) -> float:
        """Pixels per point of a preview: at least one unless too large, as thinner lines would not be drawn."""
        room, ratio = self.preview.size(), self.devicePixelRatioF()
        shown = ratio * min(room.width() / width, room.height() / height)
        whole = min(1.0, math.sqrt(MOST_PIXELS / (width * height)))
        return min(max(shown, whole, LEAST_SCALE), MOST_SCALE)

    def _drawn(self, number: int, png: bytes) -> None:
        image = QImage.fromData(png)
        if number == self._copying:
            QGuiApplication.clipboard().setImage(image)
            return
        self.preview.show_image(image)
        self._allow(True)

    def _failed(self, why: str) -> None:
        """Say why in the words of the dialog: the sentences are those of `asrscope export`."""
        for option, name in (
            ("--at", self.tr("the cursor at")),
            ("--range", self.tr("the stretch")),
            ("--select", self.tr("the selection")),
        ):
            why = why.replace(option, name)
        self._refuse(why[:1].upper() + why[1:])

    @property
    def format(self) -> str:
        return str(self.format_box.currentData())

    def _written(self, path: Path) -> None:
        self.written.emit(path)
        self.saved.set_full(self.tr("Saved: {0}").format(path))
        self._allow(True)
        self._draw()

    def _save(self) -> None:
        wanted = self.wanted()
        target = self._ask(wanted, self.format)
        if target is not None:
            self.preview.say(self.tr("Writing {0} …").format(one_line(target.name)))
            self._allow(False)
            self.drawing.write(wanted, target)

    def _copy(self) -> None:
        self._copying = self.drawing.draw(self.wanted())

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self.command.full)

    # -- Qt --------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.preview.image is not None:
            self._soon.start()

    def done(self, result: int) -> None:
        self._soon.stop()
        self.drawing.stop()
        super().done(result)
