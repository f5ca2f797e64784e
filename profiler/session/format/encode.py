"""Values as the tables of a session store them: JSON and text that is text."""

import os
from typing import Any

import msgspec
import numpy as np


def to_json(value: object) -> str:
    """Encode a value as JSON; numpy scalars and arrays become numbers and lists, NaN becomes null.

    Names of files may hold bytes that are no UTF-8; they are written with backslashes.
    """
    try:
        return msgspec.json.encode(value, enc_hook=_encode_other).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_as_text(value), enc_hook=_encode_other).decode()


def to_column(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return text(value) if isinstance(value, str) else value


def text(value: str) -> str:
    """Return `value` with what UTF-8 cannot say (bytes of odd file names) written with backslashes."""
    return value.encode("utf-8", "backslashreplace").decode()


def _as_text(value: object) -> object:
    if isinstance(value, str | os.PathLike):
        return text(os.fspath(value))
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return value


def _encode_other(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a session cannot store a {type(value).__name__}")
