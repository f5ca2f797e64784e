"""Values as JSON, the way all tables of a session store them."""

import os

import msgspec
import numpy as np


def to_json(value: object) -> str:
    """Encode a value as JSON; numpy scalars and arrays become numbers and lists, NaN becomes null."""
    return msgspec.json.encode(value, enc_hook=_encode_other).decode()


def _encode_other(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a session cannot store a {type(value).__name__}")
