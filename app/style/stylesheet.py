"""The Qt style sheet of the window, generated from the design tokens alone."""

from __future__ import annotations

from dataclasses import fields
from string import Template
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.style.theme import Tokens

_SHEET = Template(
    """
QMainWindow, QDialog, #desk { background: $surface; }
QToolTip { background: $field; color: $text; border: 1px solid $border; padding: 4px 6px; }
QFrame[card="true"] { background: $card; border: 1px solid $border; border-radius: 8px; }
QFrame[card="docked"], #dock-title { background: $card; border: 1px solid $border; }
QFrame[card="docked"] {
    border-top: none; border-bottom-left-radius: 8px; border-bottom-right-radius: 8px;
}
#dock-title { border-bottom: none; border-top-left-radius: 8px; border-top-right-radius: 8px; }
#dock-title[tabbed="true"] { border-top-left-radius: 0; }
#dock-button { background: transparent; border: 1px solid transparent; padding: 2px; }
#dock-button:hover { background: $hover; }
#dock-button:focus { border-color: $accent; }
#docks::separator { background: transparent; width: 8px; height: 8px; }
#docks::separator:hover { background: $accent; }
#docks QTabBar::tab, QDialog QTabBar::tab {
    background: transparent; color: $muted; border: 1px solid transparent; border-bottom: none;
    border-top: 2px solid transparent; padding: 3px 10px 4px 10px;
}
#docks QTabBar::tab:hover, QDialog QTabBar::tab:hover { color: $text; }
#docks QTabBar::tab:selected, QDialog QTabBar::tab:selected {
    background: $card; color: $text; border-color: $border; border-top: 2px solid $accent;
}
#docks QTabBar QToolButton { padding: 0; }
#docks QTabBar:focus::tab:selected, QDialog QTabBar:focus::tab:selected { color: $accent; }
QFrame[card="true"] QLabel, QFrame[bar="true"] QLabel, QPushButton[choice="true"] QLabel {
    background: transparent; border: none;
}
QFrame[bar="true"] { background: $card; border: none; }
#menus, #top-bar { border-bottom: 1px solid $border; }
#status-line { border-top: 1px solid $border; }
#card-note, #muted, #form-layer, #status-line QLabel { color: $muted; }
#form-layer { border-bottom: 1px solid $border; padding-bottom: 3px; qproperty-indent: 0; }
#form-more {
    background: transparent; color: $muted; border: none; border-bottom: 1px solid $border;
    border-radius: 0; padding: 0 0 3px 6px;
}
#form-more:hover, #form-more:focus, #form-more:checked { color: $text; background: transparent; }
#form-more:focus { border-bottom: 1px solid $accent; }
#segment { border-radius: 0; padding: 1px 6px; }

#pipeline-form[recorded="true"] QComboBox:disabled,
#pipeline-form[recorded="true"] QDoubleSpinBox:disabled, #pipeline-form[recorded="true"] QLineEdit:disabled {
    color: $text; background: transparent; border-color: transparent;
}
#path-button { background: transparent; border: none; padding: 0 0 4px 0; color: $muted; }
#path-button:hover, #path-button:focus { color: $text; background: $hover; }
#big-figure { color: $text; }
#scope-chip { border-color: $accent; color: $accent; text-align: left; padding: 2px 16px 2px 7px; }
#other-programs { border-bottom: 1px solid $border; border-left: 3px solid $warning; }
#first-column { border-right: 1px solid $border; }
#danger-text { color: $danger; }
#effect { color: $muted; }
#hint-away { background: transparent; border: none; padding: 3px; }
#hint-away:hover { background: $hover; }
#effect[kind="faster"] { color: $ok; }
#effect[kind="slower"] { color: $warning; }
#effect[kind="other-speech"] { border: 1px solid $border; border-radius: 6px; padding: 0 5px; }

QPushButton, QToolButton {
    background: $field; color: $text; border: 1px solid $border; border-radius: 5px;
    padding: 4px 10px;
}
QToolButton { padding: 4px 8px; }
QPushButton:hover, QToolButton:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed { background: $border; }
QPushButton:checked, QToolButton:checked, QPushButton[primary="true"] {
    background: $accent; color: $on_accent; border-color: $accent;
}
QPushButton:disabled, QToolButton:disabled {
    color: $muted; background: transparent; border-color: $border;
}
QPushButton:focus, QToolButton:focus, QComboBox:focus, QDoubleSpinBox:focus, QLineEdit:focus {
    border: 1px solid $accent;
}
QPushButton[go="true"] { background: $ok; border-color: $ok; }
QPushButton[go="true"]:disabled { background: transparent; border-color: $border; }
QPushButton[drop="true"] { text-align: left; padding: 3px 7px; border-color: $outline; }
QPushButton[drop="true"]:focus { border-color: $accent; }
QPushButton[drop="true"]:disabled { border-color: $border; }
QPushButton[quiet="true"] { background: transparent; border-color: transparent; text-align: left; }
QPushButton[quiet="true"]:hover { background: $hover; }
QPushButton[choice="true"] {
    background: $field; border: 1px solid $border; border-radius: 7px; text-align: left;
    padding: 10px 12px;
}
QPushButton[choice="true"]:hover, QPushButton[choice="true"]:focus { border-color: $accent; }
#presets-more { color: $muted; padding: 6px 10px; }
#presets-more:hover, #presets-more:checked, #presets-more:focus { color: $text; }
#presets-more:checked { background: transparent; border-color: transparent; }
#table-toggle {
    background: transparent; border-color: transparent; color: $muted; padding: 1px 6px;
}
#table-toggle:hover { color: $text; background: $hover; }
#table-toggle:focus { border-color: $accent; }
#table-toggle:checked { color: $accent; }

QComboBox, QDoubleSpinBox, QLineEdit {
    background: $field; color: $text; border: 1px solid $outline; border-radius: 5px;
    padding: 2px 7px; min-height: 19px;
    selection-background-color: $accent; selection-color: $on_accent;
}
QLineEdit { placeholder-text-color: $muted; }
QComboBox:disabled, QDoubleSpinBox:disabled, QLineEdit:disabled {
    color: $muted; background: transparent; border-color: $border;
}
QComboBox::drop-down { border: none; width: 14px; }
QComboBox::down-arrow { image: none; }
QComboBox QAbstractItemView::item:disabled { color: $muted; }
QComboBox QAbstractItemView {
    background: $card; color: $text; border: 1px solid $border; outline: none;
    selection-background-color: $accent; selection-color: $on_accent;
}
QDoubleSpinBox::up-button, QDoubleSpinBox::down-button { width: 0; border: none; }

QCheckBox { spacing: 7px; }
QCheckBox::indicator {
    background: $field; border: 1px solid $muted; border-radius: 3px; width: 12px; height: 12px;
}
QCheckBox::indicator:hover, QCheckBox::indicator:focus { border-color: $accent; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; }
QCheckBox::indicator:checked:focus { border-color: $text; }

QMenuBar { background: $card; color: $text; border-bottom: 1px solid $border; }
QMenuBar::item { padding: 4px 10px; background: transparent; }
QMenuBar::item:selected { background: $hover; border-radius: 4px; }
QMenu { background: $card; color: $text; border: 1px solid $border; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 14px; border-radius: 4px; }
QMenu::item:selected { background: $accent; color: $on_accent; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }

QScrollArea, QScrollArea > QWidget > QWidget#scrolled { background: transparent; border: none; }
QScrollBar:vertical { background: transparent; width: 9px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 9px; margin: 0; }
QScrollBar::handle { background: $outline; border-radius: 4px; min-height: 24px; min-width: 24px; }
QScrollBar::handle:vertical { margin: 0 2px; border-radius: 2px; }
QScrollBar::handle:horizontal { margin: 2px 0; border-radius: 2px; }
QScrollBar::handle:hover { background: $text; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QTableView, QListView, QTreeView {
    background: $card; alternate-background-color: $field; color: $text; border: none;
    outline: none; selection-background-color: $accent; selection-color: $on_accent;
}
QHeaderView::section {
    background: $card; color: $muted; border: none; border-bottom: 1px solid $border;
    padding: 3px 6px;
}
QTableView::item { padding: 0 3px; border: none; }
QTableCornerButton::section { background: $card; border: none; }

QProgressBar {
    background: $field; border: 1px solid $border; border-radius: 4px; height: 8px; color: $text;
    text-align: center;
}
QProgressBar::chunk { background: $accent; border-radius: 3px; }
QSplitter::handle { background: transparent; }
QSplitter::handle:hover { background: $accent; }

QDialog QTabWidget::pane, #docks QTabWidget::pane { border: none; border-top: 1px solid $border; }
#banner { border-radius: 8px; border: 1px solid $muted; background: $field; }
#banner[kind="error"] { border: 1px solid $danger; }
#banner[kind="progress"] { border: 1px solid $accent; }
#banner QLabel { background: transparent; }
#palette { background: $card; border: 1px solid $border; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
#palette QLineEdit { border: none; background: transparent; padding: 6px 8px; }
"""
)


def stylesheet(tokens: Tokens) -> str:
    colours = {field.name: value for field in fields(tokens) if isinstance(value := getattr(tokens, field.name), str)}
    return _SHEET.substitute(colours)


def restyle(widget: QWidget) -> None:
    widget.style().unpolish(widget)
    widget.style().polish(widget)
