"""Grammars of formats that are not read, known by their beginnings, so that the sentence can say what they are."""

from __future__ import annotations

import re

HEAD_BYTES = 4096
"""Of a file, that `named` wants."""
_OTHERS = (
    (
        rb"\s*(#[^\n]*\s+)*FSG_BEGIN\b",
        "a finite-state grammar of Sphinx (FSG): write it as JSGF or as a list of phrases",
    ),
    (rb"\s*#ABNF\b", "an SRGS grammar in ABNF: write it as JSGF"),
    (rb"\s*<(\?xml|!--|grammar\b)", "an XML file, as SRGS grammars are: write it as JSGF"),
    (
        rb'\s*\[\s*("|\])',
        "a JSON list, as Vosk takes it: write one word or phrase a line, without brackets, quotation marks and commas",
    ),
    (rb'\s*\{\s*("|\})', "a JSON file: write it as JSGF or as a list of phrases"),
    (rb"\s*\\data\\\s", "an ARPA language model: name it as graph.language_model"),
    (rb"Trie Language Model", "a language model: name it as graph.language_model"),
    (rb"version https://git-lfs", "a pointer of Git LFS: fetch the file itself with git lfs pull"),
    (rb"\xd6\xfd\xb2\x7e", "an OpenFst file: write it as JSGF or as a list of phrases"),
)


def named(head: bytes) -> str:
    plain = head.removeprefix(b"\xef\xbb\xbf")
    return next((what for begins, what in _OTHERS if re.match(begins, plain)), "")
