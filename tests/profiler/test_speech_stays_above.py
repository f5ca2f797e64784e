"""The profiler could profile any staged pipeline: its code has no word of speech recognition.

What a session file calls its facts stays as it is written there; texts for readers of the code may give examples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import profiler
from tests.each import each

ROOT = Path(str(profiler.__file__)).parent
OF_SPEECH = re.compile(r"senone|phone|codebook|word_?errors?|\bwer\b|\bgmm\b|\bhmm\b", re.IGNORECASE)
STORED = {("session/facts.py", "senones")}
"""Names in the files of sessions: by the module that reads them."""


def code_words(source: str) -> Iterator[str]:
    """Names in the code of a module and its texts that are not docstrings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(word := getattr(node, field, None), str):
                yield word
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


@each("path", sorted(ROOT.rglob("*.py")))
def test_no_module_of_the_profiler_knows_of_speech(path: Path) -> None:
    module = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    words = code_words(text) if OF_SPEECH.search(text) else ()
    assert not {word for word in words if OF_SPEECH.search(word) and (module, word) not in STORED}
