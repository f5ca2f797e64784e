"""A live toggle of the top bar: the switch, its name, and what it does now or what flipping it did."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.layout import NONE, lay_out, new_grid, styled
from app.model.effects import Effect
from app.model.toggles import Toggle
from app.style.plain_text import Elided, Label, describe, set_tip
from app.widgets import EffectLabel, Switch
from app.window.actions.actions import key_text

TOGGLE_WIDTH = 312  # Room for "2.7× faster · +1.0 point (n = 81 words)"
SPACING = 4  # Pixels between the effect and what follows it


class LiveToggle(QWidget):
    """A switch with its name and what flipping it did, or what it does now; toggles of one place take turns."""

    def __init__(self) -> None:
        super().__init__(minimumWidth=158, maximumWidth=TOGGLE_WIDTH)
        self.toggle: Toggle | None = None
        self._effect: Effect | None = None
        self._tip = self._text = self._now = ""
        self.switch = Switch()
        self.switch.toggled.connect(lambda on: self.toggle.set(on) if self.toggle else None)
        self.title = styled(Label(), strong=True)
        self.title.setBuddy(self.switch)
        self.subtitle = styled(Elided(), 0.9, muted=True)
        self.subtitle.setMinimumWidth(0)  # the effect comes first
        self.subtitle.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.effect = EffectLabel()
        self.effect.hide()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        grid = new_grid(self, 8, 0)
        grid.addWidget(self.switch, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.title, 0, 1)
        said = lay_out(QHBoxLayout(), self.effect, (self.subtitle, 1), spacing=SPACING, margins=NONE)
        grid.addLayout(said, 1, 1)
        grid.setColumnStretch(1, 1)

    def sizeHint(self) -> QSize:
        """As wide as possible: a switch must not move because a text next to it changed."""
        return QSize(TOGGLE_WIDTH, super().sizeHint().height())

    def show_toggles(self, sharing: Sequence[Toggle]) -> None:
        """Show the first of those that share the place; the tool tip says why it is not another one."""
        shown = self.toggle = sharing[0]
        title, self._now, reason = self.tr(shown.declared.title), shown.text(), shown.unavailable_reason
        tip = self.tr("{0}; can be changed during a run ({1})")
        tips = [reason or tip.format(self.tr(shown.declared.tip), key_text(shown.declared.key))]
        for other in sharing[1:]:
            tips.append(f"{self.tr(other.declared.title)}: {other.idle}")
        self._tip = "\n".join(tips)
        self.title.setText(title)
        self.switch.setEnabled(reason is None)
        with QSignalBlocker(self.switch):
            self.switch.setChecked(shown.on)
        self.switch.update()
        describe(self.switch, title)
        self._text = reason or self._now
        self._show_below()

    def show_effect(self, effect: Effect | None, arm: Mapping[str, object] | None = None) -> None:
        """Show what flipping it did (None: it was not), and of an A/B the side of the arm that has these settings."""
        if effect != self._effect:
            self._effect = effect
            self._show_below()
        if (shown := self.toggle) is not None:
            on = arm[shown.key] != shown.declared.off if arm and shown.key in arm else shown.on
            if on != self.switch.isChecked():
                with QSignalBlocker(self.switch):
                    self.switch.setChecked(on)
                self.switch.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_headline()

    def _show_headline(self) -> None:
        effect = self._effect
        if effect is not None:
            room = self.width() - self.title.x() - SPACING - self.subtitle.minimumSizeHint().width()
            fits = self.effect.fontMetrics().horizontalAdvance(effect.headline) <= room
            self.effect.show_kind(effect.kind, effect.headline if fits else effect.brief)

    def _show_below(self) -> None:
        effect = self._effect
        if effect is None or self.toggle is None or self.toggle.idle or self.toggle.ready_in:
            self.effect.hide()
            brief = self._now.partition(": ")[0].partition(" · ")[0]
            self.subtitle.set_full(self._now, brief)
            describe(self.switch, description=self._text)
            set_tip(self, self._tip)
            return
        self._show_headline()
        self.effect.show()
        self.subtitle.set_full(*(f"· {text}" if text else "" for text in (effect.remark, *effect.shorter)))
        describe(self.switch, description=f"{self._text}. {effect.text}")
        set_tip(self, "\n".join((self._now, effect.details, self._tip)))
