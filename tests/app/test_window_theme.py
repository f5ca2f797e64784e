"""One table of colours: complete, readable, and distinguishable without relying on hue."""

import itertools

import numpy as np
import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QFont, QFontInfo
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit

from app.style.stylesheet import stylesheet
from app.style.theme import DARK, FONT_FAMILY, LIGHT, OWN_FONTS, font, set_theme, theme, theme_changed
from app.widgets import CheckBox, ChoiceBox, Switch
from profiler.analysis.categories import CATEGORIES

BOTH = pytest.mark.parametrize("tokens", [DARK, LIGHT], ids=["dark", "light"])

READABLE = 4.5  # Contrast ratio that WCAG 2.2 asks of text (success criterion 1.4.3)

#: Deuteranopia in linear RGB at full severity (Machado, Oliveira and Fernandes, 2009, table 1).
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def linear(color: str) -> np.ndarray:
    c = QColor(color)
    rgb = np.array([c.redF(), c.greenF(), c.blueF()])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(color: str) -> float:
    return float(linear(color) @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@BOTH
def test_text_is_readable_on_every_ground_and_on_filled_buttons(tokens):
    inks = itertools.product((tokens.text, tokens.muted), (tokens.surface, tokens.card, tokens.field, tokens.hover))
    for ink, ground in (*inks, (tokens.on_accent, tokens.accent), (tokens.danger, tokens.card)):
        assert contrast(ink, ground) >= READABLE, (ink, ground)


@BOTH
def test_the_large_categories_differ_to_a_colour_blind_eye(tokens):
    seen = {
        name: np.clip(DEUTERANOPIA @ linear(tokens.category[name]), 0, 1) ** (1 / 2.2)
        for name in ("compute", "memory", "unexplained", "other_programs", "search")
    }
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 0.12, (a, b)


@BOTH
def test_categories_have_colours_and_hatches_and_the_style_sheet_is_filled(tokens):
    assert set(CATEGORIES) | {"idle"} == set(tokens.category)
    assert len(set(tokens.hatch.values())) == len(tokens.hatch) == len(tokens.category)
    sheet = stylesheet(tokens)
    assert "$" not in sheet
    assert tokens.accent in sheet


def test_setting_a_theme_reaches_palette_and_listeners(qtbot):
    with qtbot.waitSignal(theme_changed) as reported:
        set_theme("light")
    assert reported.args == [LIGHT]
    assert theme() is LIGHT
    assert QApplication.palette().window().color() == LIGHT.color("surface")
    with pytest.raises(ValueError, match="dark, light, system"):
        set_theme("purple")


def test_menus_have_the_face_of_all_the_rest(qapp):
    """A desktop sets fonts for menus, tool tips and lists, which would stand above the application's."""
    for kind in OWN_FONTS:
        QApplication.setFont(QFont("Serif", 17), kind)
    set_theme("dark")
    assert QFontInfo(font()).family() == FONT_FAMILY
    for kind in OWN_FONTS:
        assert QApplication.font(kind).family() == FONT_FAMILY
        assert QApplication.font(kind).pointSizeF() == font().pointSizeF()


NOTICED = 3.0  # Contrast ratio that WCAG 2.2 asks of what a control is known by (success criterion 1.4.11)


def ticked() -> CheckBox:
    box = CheckBox("")
    box.setChecked(True)
    return box


@BOTH
@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda: CheckBox(""), NOTICED),
        (ticked, NOTICED),
        (Switch, NOTICED),
        (lambda: Switch(small=True), NOTICED),
        (lambda: ChoiceBox("", ()), READABLE),
        (lambda: QLineEdit(placeholderText="whole session"), READABLE),
    ],
    ids=["box", "ticked box", "switch", "small switch", "list", "placeholder"],
)
def test_controls_stand_out_from_their_ground(qtbot, tokens, make, least):
    set_theme(tokens.name)
    page = QDialog()
    qtbot.addWidget(page)
    control = make()
    if isinstance(control, ChoiceBox):
        control.addItems(["one", "two"])
    control.setParent(page)
    control.resize(control.sizeHint())
    page.resize(2 * control.size())
    page.show()
    page.setFocus()
    image = page.grab(control.geometry()).toImage()
    ground = page.grab(QRect(page.width() - 2, page.height() - 2, 1, 1)).toImage()
    inks = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    against = ground.pixelColor(0, 0).name()
    assert max(contrast(ink, against) for ink in inks) >= least
    set_theme("dark")
