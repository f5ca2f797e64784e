"""Plain lists of words or phrases, one a line: an utterance is any of them, once or more often.

Empty lines and lines that begin with `#` are skipped. All lines are equally probable. A grammar of a format that is not
read is known by its beginning, so that the sentence can say what it is.
"""

import io
import os
import re
from pathlib import Path

from pipelines.models.dictionary import JOINERS
from pipelines.models.grammar import expression
from pipelines.models.grammar.expression import Alternatives, Grammar, GrammarError, Repeat, Sequence, Word
from profiler.plain import one_line, printable

RULE = "list"
SHOWN = 40  # characters of a word that a sentence repeats
_THRESHOLD = re.compile(r"/[-+.\deE]+/")


def read(path: str | os.PathLike[str]) -> Grammar:
    """The list as a grammar; GrammarError (one sentence) for a file that is none."""
    file, name = Path(path), one_line(os.fspath(path))
    phrases: dict[tuple[str, ...], int] = {}
    n_words = 0
    for number, line in enumerate(io.StringIO(expression.decoded(file), newline=None), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 1 and _THRESHOLD.fullmatch(words[-1]):
            raise GrammarError(
                f"{name} is a list of keywords of pocketsphinx: line {number} ends with the threshold "
                f"{one_line(words[-1], SHOWN)}; leave the thresholds out."
            )
        n_words += len(words)
        if n_words > expression.MAX_WORDS:
            raise GrammarError(f"{name} lists more than {expression.MAX_WORDS:,} words.")
        for word in words:
            if printable(word, JOINERS) != word:
                raise GrammarError(
                    f"{name}, line {number}: the word '{one_line(word, SHOWN)}' has a character that does not show."
                )
        phrases.setdefault(tuple(words), number)
    if not phrases:
        raise GrammarError(f"{name} lists no word or phrase.")
    choices = tuple((1.0, Sequence(tuple(Word(word, number) for word in words))) for words, number in phrases.items())
    return Grammar(file, {RULE: Repeat(Alternatives(choices))}, (RULE,))


HEAD_BYTES = 4096  # of a file, that `named` wants
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
