"""One table of design tokens, light and dark, and the application's font.

Every colour in the window, the charts and exported pictures comes from ``_TABLE``: a ``border`` separates, an
``outline`` marks a control. The category colours follow the Okabe-Ito palette (M. Okabe and K. Ito, *Color Universal
Design*, 2008), adjusted in lightness; every category has a hatch too, so that colour is never the only sign. Qt's own
colour scheme is not used: on the ``offscreen`` platform it is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QFontDatabase, QFontMetricsF, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app.style.stylesheet import stylesheet
from profiler.analysis.categories import CATEGORY_NAMES

Hatch = Literal["solid", "diagonal", "back", "cross", "dots", "horizontal", "vertical", "dense", "grid", "sparse"]

#: name -> (dark, light). Alpha, where there is any, comes first: #AARRGGBB, as Qt writes it.
_TABLE: dict[str, tuple[str, str]] = {
    "surface": ("#111318", "#f3f4f6"),
    "card": ("#181b21", "#ffffff"),
    "border": ("#272b34", "#dfe3e8"),
    "outline": ("#6c7484", "#7f8794"),
    "field": ("#1f232b", "#f5f6f8"),
    "hover": ("#2a2f39", "#e9ecf0"),
    "text": ("#eceef2", "#171a20"),
    "muted": ("#9aa2b0", "#5a6372"),
    "accent": ("#5aa9f5", "#1f6fd0"),
    "on_accent": ("#0b1016", "#ffffff"),
    "danger": ("#f0705f", "#c8412f"),
    "danger_soft": ("#472d2e", "#f6d8d3"),
    "ok": ("#3fbf95", "#148a67"),
    "warning": ("#e0b040", "#8f6a00"),
    "grid": ("#262a33", "#e4e7ec"),
    "waveform": ("#5f6673", "#a6adb8"),
    "cursor": ("#5aa9f5", "#1f6fd0"),
    "selection": ("#335aa9f5", "#261f6fd0"),
    "marker": ("#eceef2", "#171a20"),
}

#: category -> (dark, light, hatch)
_CATEGORIES: dict[str, tuple[str, str, Hatch]] = {
    "compute": ("#4891d9", "#2f7fd6", "solid"),
    "memory": ("#d8983b", "#d98a14", "diagonal"),
    "unexplained": ("#6c7686", "#a9b2bf", "dots"),
    "other_programs": ("#383e49", "#dfe3e9", "grid"),
    "transfer": ("#c77bb5", "#b0609c", "cross"),
    "search": ("#35b08c", "#1c9a77", "back"),
    "frontend": ("#98a3b3", "#8793a5", "vertical"),
    "overhead": ("#4a5160", "#c9cfd8", "horizontal"),
    "throttled": ("#8a5a3c", "#b98a6a", "sparse"),
    "idle": ("#2a2f39", "#e9ecf0", "dense"),
}

#: part of a stage's time -> (dark, light): shades of the category that it counts to.
_PARTS: dict[str, tuple[str, str]] = {
    "arithmetic": ("#4891d9", "#2f7fd6"),
    "instructions": ("#9cc7ef", "#93bdec"),
    "bandwidth": ("#d8983b", "#d98a14"),
    "latency": ("#f2d3a0", "#f0c98a"),
    "calls": ("#2a5a8f", "#174a86"),
    "other_programs": ("#383e49", "#dfe3e9"),
    "throttled": ("#4a4450", "#d5d0da"),
    "not_attributed": ("#6c7686", "#a9b2bf"),
}

_HATCH_STYLES: dict[str, Qt.BrushStyle] = {
    "solid": Qt.BrushStyle.SolidPattern,
    "diagonal": Qt.BrushStyle.FDiagPattern,
    "back": Qt.BrushStyle.BDiagPattern,
    "cross": Qt.BrushStyle.DiagCrossPattern,
    "dots": Qt.BrushStyle.Dense6Pattern,
    "horizontal": Qt.BrushStyle.HorPattern,
    "vertical": Qt.BrushStyle.VerPattern,
    "dense": Qt.BrushStyle.Dense5Pattern,
    "grid": Qt.BrushStyle.CrossPattern,
    "sparse": Qt.BrushStyle.Dense7Pattern,
}

#: Names of the categories as people read them (the keys are the ones of the analysis).
CATEGORY_TITLES: Mapping[str, str] = MappingProxyType({**CATEGORY_NAMES, "idle": "idle"})


@dataclass(frozen=True)
class Tokens:
    """Colours of one theme as ``#rrggbb`` (or ``#aarrggbb``) strings, ready for ``QColor``."""

    name: str
    surface: str
    card: str
    border: str
    outline: str
    field: str
    hover: str
    text: str
    muted: str
    accent: str
    on_accent: str
    danger: str
    danger_soft: str
    ok: str
    warning: str
    grid: str
    waveform: str
    cursor: str
    selection: str
    marker: str
    category: Mapping[str, str]
    part: Mapping[str, str]
    hatch: Mapping[str, Hatch]

    @property
    def is_dark(self) -> bool:
        return self.name == "dark"

    def color(self, token: str, alpha: int | None = None) -> QColor:
        value = self.category.get(token)
        found = QColor(_parsed(value if value is not None else getattr(self, token)))
        if alpha is not None:
            found.setAlpha(alpha)
        return found

    def hatch_brush(self, category: str) -> QBrush:
        """The brush drawn over a category's flat colour; none for solid, nor for a token that is no category's."""
        style = _HATCH_STYLES[self.hatch.get(category, "solid")]
        if style == Qt.BrushStyle.SolidPattern:
            return QBrush(Qt.BrushStyle.NoBrush)
        return QBrush(self.color("card", 90), style)


@cache
def _parsed(value: str) -> QColor:
    return QColor(value)


def _tokens(name: str, column: int) -> Tokens:
    category = {key: row[column] for key, row in _CATEGORIES.items()}
    hatch = {key: row[2] for key, row in _CATEGORIES.items()}
    return Tokens(
        name=name,
        category=MappingProxyType(category),
        part=MappingProxyType({key: row[column] for key, row in _PARTS.items()}),
        hatch=MappingProxyType(hatch),
        **{key: row[column] for key, row in _TABLE.items()},
    )


DARK = _tokens("dark", 0)
LIGHT = _tokens("light", 1)
THEMES: Mapping[str, Tokens] = MappingProxyType({"dark": DARK, "light": LIGHT})

#: Family of the bundled font, and its substitute if it cannot be loaded.
FONT_FAMILY = "Inter"
_FONT_FILES = ("Inter-Regular.otf", "Inter-SemiBold.otf", "Inter-Bold.otf")
BASE_POINT_SIZE = 9.0

OWN_FONTS = ("QMenu", "QMenuBar", "QMessageBox", "QTipLabel", "QHeaderView", "QAbstractItemView")  # Of the desktop


class _Notifier(QObject):
    changed = Signal(object)


_notifier = _Notifier()
#: Emitted with the new ``Tokens`` after ``set_theme``.
theme_changed = _notifier.changed
_current = DARK
_fonts_loaded = False


SYSTEM = "system"  # Instead of a theme name: the theme of the desktop


def theme() -> Tokens:
    return _current


def set_theme(name: str) -> Tokens:
    """Switch the application to ``"dark"``, ``"light"`` or ``"system"`` and notify every view."""
    global _current
    if name == SYSTEM:
        scheme = QGuiApplication.styleHints().colorScheme()
        name = "light" if scheme == Qt.ColorScheme.Light else "dark"
    if name not in THEMES:
        raise ValueError(f"theme must be one of dark, light, system; not {name!r}")
    _current = THEMES[name]
    application = QApplication.instance()
    if isinstance(application, QApplication):
        _apply(application, _current)
    theme_changed.emit(_current)
    return _current


def _apply(application: QApplication, tokens: Tokens) -> None:
    load_fonts()
    # Qt takes four times as long to change a style sheet as to drop it and take another.
    application.setStyleSheet("")
    if application.style().name() != "fusion":
        application.setStyle("Fusion")
    application.setFont(font())
    for kind in OWN_FONTS:
        QApplication.setFont(font(), kind)  # type: ignore[arg-type]  # it takes no bytes
    application.setPalette(palette(tokens))
    application.setStyleSheet(stylesheet(tokens))


def load_fonts() -> None:
    """Register the bundled font once, so that pictures look the same on every machine."""
    global _fonts_loaded
    if _fonts_loaded:
        return
    folder = resources.files("assets") / "fonts"
    for file in _FONT_FILES:
        QFontDatabase.addApplicationFontFromData((folder / file).read_bytes())
    _fonts_loaded = True


def font(scale: float = 1.0, *, strong: bool = False) -> QFont:
    """Return the application font, ``scale`` times its base size, with tabular figures."""
    load_fonts()
    return QFont(_made(scale, strong))


@lru_cache(maxsize=1 << 13)
def text_width(text: str, scale: float = 1.0, *, strong: bool = False) -> float:
    """Width of `text` in that font, in pixels: shaping it takes as long as drawing it."""
    return QFontMetricsF(font(scale, strong=strong)).horizontalAdvance(text)


@cache
def _made(scale: float, strong: bool) -> QFont:
    result = QFont(FONT_FAMILY)
    result.setPointSizeF(BASE_POINT_SIZE * scale)
    if strong:
        result.setWeight(QFont.Weight.DemiBold)
    return result


def palette(tokens: Tokens) -> QPalette:
    role = QPalette.ColorRole
    result = QPalette()
    for token, keys in {
        "surface": (role.Window,),
        "card": (role.Base,),
        "field": (role.AlternateBase, role.Button, role.ToolTipBase),
        "text": (role.WindowText, role.Text, role.ButtonText, role.ToolTipText),
        "muted": (role.PlaceholderText,),
        "danger": (role.BrightText,),
        "accent": (role.Highlight, role.Link, role.Accent),
        "on_accent": (role.HighlightedText,),
        "border": (role.Mid, role.Dark),
        "hover": (role.Light,),
    }.items():
        for key in keys:
            result.setColor(key, tokens.color(token))
    for key in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, key, tokens.color("muted"))
    return result


def blended(color: str, towards: str, share: float) -> str:
    """`color` moved by `share` (0…1) towards another, as ``#rrggbb``."""
    pairs = zip(rgb(color), rgb(towards), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


@cache
def rgb(color: str) -> tuple[int, int, int]:
    """Red, green, blue 0…255 of ``#rrggbb`` (or ``#aarrggbb``, whose alpha is left out)."""
    digits = color.lstrip("#")[-6:]
    return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
