"""What the decoders read of their settings; `pipelines.config.Search` is such."""

from __future__ import annotations

from typing import Protocol


class SearchSettings(Protocol):
    """See the fields of `pipelines.config.Search`."""

    @property
    def beam(self) -> float: ...  # noqa: D102
    @property
    def max_active(self) -> int: ...  # noqa: D102
    @property
    def min_active(self) -> int: ...  # noqa: D102
    @property
    def acoustic_scale(self) -> float: ...  # noqa: D102
    @property
    def insertion_penalty(self) -> float: ...  # noqa: D102
    @property
    def governor(self) -> bool: ...  # noqa: D102
    @property
    def wished_rtf(self) -> float: ...  # noqa: D102
    @property
    def lattice(self) -> bool: ...  # noqa: D102
    @property
    def lattice_beam(self) -> float: ...  # noqa: D102
    @property
    def nbest(self) -> int: ...  # noqa: D102
