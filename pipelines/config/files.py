"""Settings that name files: kept so that a session's are found from any folder, and found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipelines.config.options import Option, get, replace
from pipelines.config.tree import Config, options
from profiler.files import named


def of_files() -> list[Option]:
    return [option for option in options() if option.type == "text" and not option.like]


def kept(config: Config) -> Config:
    """`config` as a session keeps it: files by their whole path, what ships with the program by its name."""
    return _with_places(config, named.kept)


def found_again(config: Config, session: Path) -> Config:
    """`config` with the files that it named when `session` was recorded, which may have named them from elsewhere."""
    return _with_places(config, lambda path: named.locate(path, session))


def _with_places(config: Config, place: Callable[[str], str]) -> Config:
    for option in of_files():
        path = str(get(config, option.key))
        if path and path not in option.shipped():
            config = replace(config, option.key, place(path))
    return config
