"""The stretch that a view counts over, and going to a place in it: a place that is gone to is selected as well."""

from __future__ import annotations

from app.model.time_axis import TimeAxis


class Scope:
    """The selection of the axis, without those that `go_to` made: a row that is clicked does not hide the others."""

    def __init__(self, axis: TimeAxis) -> None:
        self._axis = axis
        self._frames: tuple[int, int] | None = None
        self._made: tuple[float, float] | None = None
        self._counted: tuple[float, float] | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether something else is selected than when `frames` was read; a range that only moves changes nothing."""
        return self._axis.selected != self._counted

    def frames(self) -> tuple[int, int] | None:
        """Frames [first, last) to count over; None: all."""
        self._counted = self._axis.selected
        if self._made is None or self._axis.selected != self._made:
            self._frames, self._made = self._axis.selected_frames, None
        return self._frames

    def go_to(self, first_s: float, last_s: float, around: float) -> None:
        """Select a stretch; where it is not in view, show it with `around` times its length on both sides."""
        self._axis.reveal(first_s, last_s, around)
        self.frames()
        self._axis.select(first_s, last_s)
        self._made = self._axis.selected

    def forget(self) -> None:
        """The session was closed."""
        self._frames = self._made = self._counted = None
