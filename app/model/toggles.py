"""Toggles at the top of the window: the settings that the tree declares as such.

Each switches between off and its last value. Toggles of one place share it: the visible one is that which acts
with the other settings (Gaussian selection for mixtures, lazy evaluation for a net).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Signal

from pipelines import config as settings
from pipelines.config import Config, Option, Value
from pipelines.config import Toggle as Declared

if TYPE_CHECKING:
    from app.model.pipeline import Pipeline

KEEPS_ALL = "none"  # The choice, of a setting that hangs on a toggle, that does nothing
SKIP = "frames.skip"  # The toggle that is said in a sentence of its own


tr = partial(QCoreApplication.translate, "toggles")


class Toggle:
    """A toggle over the settings of a pipeline."""

    def __init__(self, option: Option, declared: Declared, pipeline: Pipeline) -> None:
        self.key, self.declared = option.key, declared
        self._pipeline = pipeline
        self._hanging = [o for o in pipeline.options if o.switched_by == option.key and o.type == "choice"]
        self._last: dict[str, Value] = {option.key: declared.on}
        self._last |= {o.key: o.default for o in self._hanging}

    @property
    def on(self) -> bool:
        return self._pipeline.value(self.key) != self.declared.off

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._last)

    def other_side(self) -> dict[str, Value]:
        return {self.key: self.declared.off} if self.on else self._switched_on()

    @property
    def idle(self) -> str | None:
        """Why it has no effect with the other settings; None if it has one."""
        return self._pipeline.unavailable_reason(self.key)

    @property
    def ready_in(self) -> str:
        return self._pipeline.toggles.ready_in

    @property
    def unavailable_reason(self) -> str | None:
        """Why it cannot be switched now; None if it can."""
        why = self.idle or self._pipeline.locked or self.ready_in
        if why or self.on:
            return why or None
        reasons = (self._pipeline.unavailable_reason(*setting) for setting in self._switched_on().items())
        return next((reason for reason in reasons if reason), None)

    def flip(self) -> None:
        self.set(not self.on)

    def set(self, on: bool) -> None:
        """Switch it off, or to what it was on last; a choice hanging on it that does nothing goes back too."""
        if not on:
            self._pipeline.set(self.key, self.declared.off)
            return
        for key, value in self._switched_on().items():
            self._pipeline.set(key, value)

    def _switched_on(self) -> dict[str, Value]:
        wanted = {o.key: self._pipeline.value(o.key) for o in self._hanging}
        wanted |= {key: self._last[key] for key, value in wanted.items() if value == KEEPS_ALL}
        return wanted | {self.key: self._last[self.key]}

    def note_used(self, config: Config) -> None:
        """Remember what is chosen in `config`, if it is anything but off."""
        nothing: dict[str, Value] = dict.fromkeys(self._last, KEEPS_ALL)
        nothing[self.key] = self.declared.off
        for key in self._last:
            if (value := settings.get(config, key)) != nothing[key]:
                self._last[key] = value

    def text(self) -> str:
        """Say in a few words what it does now."""
        value = self._pipeline.value(self.key)
        if self.ready_in:
            return self.ready_in
        if not self.on:
            return tr("off: {0}").format(tr(self.declared.without))
        if said := self.declared.says.get(str(value)):
            return tr(said)
        if self.key == SKIP:
            return _skipping(self._pipeline)
        parts = [] if isinstance(value, bool) else [str(value)]
        for chosen in self._hanging:
            parts.append(str(self._pipeline.value(chosen.key)))
            if parts[-1] == KEEPS_ALL:
                return tr("{0} none: {1}").format(tr(chosen.title).lower(), tr(self.declared.without))
            for option in self._pipeline.options:
                if chosen.key in option.when and self._pipeline.unavailable_reason(option.key) is None:
                    number = settings.value_text(self._pipeline.value(option.key))
                    parts.append(f"{number} {tr(option.unit or option.title.lower())}")
        return " · ".join(parts)


def _skipping(pipeline: Pipeline) -> str:
    skip, rule = int(pipeline.value(SKIP)), pipeline.value("frames.rule")
    if rule == "conditional":
        return tr("skips up to {0} in a row that are alike").format(skip - 1)
    if rule == "multi-frame":
        return tr("one pass of the net for {0} frames").format(skip)
    ordinal = {2: tr("2nd"), 3: tr("3rd")}.get(skip, tr("{0}th").format(skip))
    return tr("scores every {0}, {1} between").format(ordinal, rule)


@cache
def toggle_keys() -> tuple[frozenset[str], ...]:
    """For each toggle the settings that flipping it may change."""
    options = settings.options()
    return tuple(
        frozenset({option.key, *(o.key for o in options if o.switched_by == option.key and o.type == "choice")})
        for option in options
        if option.toggle is not None
    )


class Toggles(QObject):
    """All toggles of a pipeline, in the order of their places."""

    readiness_changed = Signal()

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        toggles = [Toggle(o, o.toggle, pipeline) for o in pipeline.options if o.toggle is not None]
        self._by_key = {toggle.key: toggle for toggle in sorted(toggles, key=lambda toggle: toggle.declared.place)}
        self.ready_in = ""  # When they act, while a run is being prepared

    def __iter__(self) -> Iterator[Toggle]:
        return iter(self._by_key.values())

    def __getitem__(self, key: str) -> Toggle:
        return self._by_key[key]

    def places(self) -> list[list[Toggle]]:
        """The toggles by the place that they share, each place's acting one first."""
        by_place: dict[int, list[Toggle]] = {}
        for toggle in self:
            by_place.setdefault(toggle.declared.place, []).append(toggle)
        return [sorted(sharing, key=lambda t: t.idle is not None) for sharing in by_place.values()]

    def note_used(self, config: Config) -> None:
        for toggle in self:
            toggle.note_used(config)

    def prepare(self, left_s: int | None) -> None:
        """A run is being prepared, for `left_s` seconds more (None: not known); 0: it is ready."""
        text = "" if left_s == 0 else tr("not ready yet")
        if left_s:
            text = tr("ready in {0} s").format(left_s)
        if text != self.ready_in:
            self.ready_in = text
            self.readiness_changed.emit()
