"""What draws by itself needs the colours of the theme: those of when it was made, until it is told of others."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.style.theme import Tokens, theme


class ThemedWidget(QWidget):
    """A widget that paints itself in the theme's colours."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tokens = theme()

    def apply_theme(self, tokens: Tokens) -> None:
        """Take over colours."""
        self._tokens = tokens
        self.update()
