"""Texts of strangers: configurations, transcripts, grammars, lists, dictionaries and language models."""

from __future__ import annotations

import bz2
import functools
import gzip
import itertools
import os
import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from pipelines.config import options
from tests.bench.campaign._damage import mutated
from tests.bench.campaign.attack import SPEECH, Attack

RUN = ("run", "--preset", "gmm-quick", "--no-profile", "--audio", SPEECH)
HEADER = "#JSGF V1.0;\ngrammar t;\npublic <a> = "

TOML = """title = "Mine"
description = "Of my own."
[config]
block = 8
model = "ptm"
[config.search]
beam = 11.0
[config.graph]
grammar = "digits"
"""
TSV = f"file\ttranscript\n{SPEECH}\tyes of course\nother.wav\tno\n"
JSGF = HEADER + '[please] (yes | no | /2/ of course) <b>*;\n<b> = {tag} now | "right now"; // end\n'
LIST = "# commands\nyes\nof course\nno\n"
DICTIONARY = "yes Y EH S\nyes(2) Y AE S\nof AH V\ncourse K AO R S\nno N OW\nnow N AW\n"
ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-1.0 <s> -0.3
-1.0 </s>
-0.7 yes -0.2
-0.7 of -0.1
-0.7 course -0.1

\\2-grams:
-0.5 <s> yes
-0.2 of course
-0.4 course </s>

\\end\\
"""
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a.toml": (TOML, ("run", "--config", "a.toml", "--no-profile", "--audio", SPEECH)),
    "a.tsv": (TSV, (*RUN, "--transcripts", "a.tsv")),
    "a.gram": (JSGF, (*RUN, "--set", "graph.grammar=a.gram")),
    "a.txt": (LIST, (*RUN, "--set", "graph.grammar=a.txt")),
    "a.dict": (
        DICTIONARY,
        (*RUN, "--set", "graph.dictionary=a.dict", "--set", "graph.grammar=b.txt"),
    ),
    "a.arpa": (ARPA, (*RUN, "--set", "graph.language_model=a.arpa")),
    "a.arpa.gz": (ARPA, (*RUN, "--set", "graph.language_model=a.arpa.gz")),
    "a.arpa.bz2": (ARPA, (*RUN, "--set", "graph.language_model=a.arpa.bz2")),
}
"""File, sound content, and the command that reads it."""
VALUES = (
    "", "x", "\U0001f600", "9" * 6000, "-1", "nan", "inf", "1e999", "true", "[1]", "{}", "/dev/zero", "x" * 5000, "²",
    "~nobody-of-this-name/x", "\x1b[31m", "1_0",
)  # fmt: skip


def attacks(random: random.Random, count: int) -> Iterator[Attack]:
    """`count` attacks: those on purpose first, then mutations."""
    return islice(_all(random), count)


def _all(rng: random.Random) -> Iterator[Attack]:
    for kind, name, content in _on_purpose():
        yield _attack(kind, name, content)
    for name, (_, command) in KINDS.items():
        for device in ("/dev/zero", "/dev/full", "/", "/proc/self/mem"):
            make = functools.partial(_link, name=name, target=device)
            yield Attack(f"texts: {name} is a link to {device}", make, (command,))
        if hasattr(os, "mkfifo"):
            make = functools.partial(lambda folder, name: os.mkfifo(folder / name), name=name)
            yield Attack(f"texts: {name} is a pipe", make, (command,))
        yield Attack(f"texts: no {name}", lambda folder: None, (command,))
    keys = [*(option.key for option in options()), "", "x", "search.", "gmm", "a.b.c"]
    while True:
        if rng.random() < 0.25:
            key, value = rng.choice(keys), rng.choice(VALUES)
            command = (*RUN, "--set", "graph.grammar=digits", "--set", f"{key}={value}")
            yield Attack(f"texts: {key} = {value[:20]!r}", lambda folder: None, (command,))
            continue
        name, seed = rng.choice(list(KINDS)), rng.getrandbits(32)
        make = functools.partial(_write_mutated, name, seed)
        yield Attack(f"texts: {name} mutated by {seed}", make, (KINDS[name][1],))


def _link(folder: Path, name: str, target: str) -> None:
    (folder / name).symlink_to(target)


def _attack(kind: str, what: str, content: Callable[[], bytes]) -> Attack:
    def make(folder: Path) -> None:
        (folder / kind).write_bytes(content())
        (folder / "b.txt").write_text("yes\nno\n", encoding="utf-8")

    return Attack(f"texts: {what}", make, (KINDS[kind][1],))


def _write_mutated(kind: str, seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    data = KINDS[kind][0].encode()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(kind).suffix, bytes)
    if pack is not bytes and rng.random() < 0.5:
        data = mutated(rng, pack(data))
    else:
        data = pack(mutated(rng, data, len(data)))
    (folder / kind).write_bytes(data)
    (folder / "b.txt").write_text("yes\nno\n", encoding="utf-8")


def _on_purpose() -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    for kind, what, text in _texts():
        yield kind, what, functools.partial(text.encode, "utf-8", "surrogatepass")
    for head, line in (
        ("\\data\\\nngram 1=40000000\n\n\\1-grams:\n", "-1 yes\n"),
        ("\\data\\\nngram 1=2\n\n\\1-grams:\n", "\n"),
        ("", "hello\n"),
        (ARPA.partition("\n-0.5")[0] + "\n", "-1 of yes\n"),
    ):
        for lines in (5_000_000, 20_000_000):
            packed = functools.partial(_packed, head, line, lines)
            yield "a.arpa.gz", f"{lines} packed lines {line!r}", packed


def _packed(head: str, line: str, lines: int) -> bytes:
    return gzip.compress(head.encode() + line.encode() * lines, 1)


def _texts() -> Iterator[tuple[str, str, str]]:
    yield "a.toml", "TOML 5 000 deep", "a = " + "[" * 5000 + "]" * 5000
    yield "a.toml", "tables 5 000 deep", "[config" + ".a" * 5000 + "]\nx = 1"
    values = (
        "9" * 6000, "9" * 400, "[1]", "{}", "{a = 1}", "2024-02-29", "07:32:00", "nan", "-inf", "''", "true",
    )  # fmt: skip
    keys = (
        "block",
        "pace",
        "loop",
        "model",
        "model_directory",
        "search",
        "search.beam",
        "graph.order",
    )
    for value, key in itertools.product(values, keys):
        if (key, value) == ("loop", "true"):  # sound input: that run goes on until it is stopped
            continue
        yield "a.toml", f"{key} = {value[:12]}", f"[config]\n{key} = {value}\n"
    yield "a.toml", "NUL in a value", '[config.graph]\ngrammar = "a\\u0000b"\n'
    yield "a.toml", "a long key", "[config]\n" + "x" * 1_000_000 + " = 1\n"
    yield "a.toml", "very many keys", "[config]\n" + "".join(f"x{i} = 1\n" for i in range(200_000))
    yield "a.tsv", "very many lines", "file\ttranscript\n" + "a.wav\t\n" * 2_000_000
    yield "a.tsv", "a long transcript", f"file\ttranscript\n{SPEECH}\t{'yes ' * 2_000_000}\n"
    yield "a.tsv", "NUL in a name", "file\ttranscript\na\0b\tyes\n"
    yield "a.tsv", "a loop of names", "file\ttranscript\n" + "../" * 3000 + "x\tyes\n"
    yield "a.gram", "a line of 300 000 words", HEADER + "yes no " * 150_000 + ";\n"
    yield "a.txt", "a list's line of 300 000 words", "yes no " * 150_000
    yield "a.txt", "a million words", "".join(f"w{i}\n" for i in range(1_000_000))
    yield "a.gram", "a million marks", HEADER + "yes" + "+" * 1_000_000 + ";\n"
    yield "a.gram", "groups 5 000 deep", HEADER + "(" * 5000 + "yes" + ")" * 5000 + ";\n"
    yield "a.gram", "weights beyond floats", HEADER + "/1e308/ yes | /1e308/ no | /1e-320/ of;\n"
    yield "a.gram", "a header without an end", "#JSGF V1.0" + " " * 3_000_000
    yield "a.gram", "a tag without an end", HEADER + "yes {" + "x" * 3_000_000
    yield "a.gram", "a million tags within tags", HEADER + "yes " + "{{}" * 1_000_000
    for name in ("punycode", "idna", "utf-7", "unicode_escape", "rot13", "UTF-16", "\x1b[31m"):
        yield "a.gram", f"declared {name!r}", HEADER.replace(";", f" {name};", 1) + "yes \\} né;\n"
    rules = "".join(f"<b{i}> = <b{i + 1}> <b{i + 1}>;\n" for i in range(50))
    yield "a.gram", "rules that double", f"{HEADER}<b0>;\n{rules}<b50> = yes;\n"
    chain = "".join(f"<b{i}> = <b{i + 1}>;\n" for i in range(5000))
    yield "a.gram", "a chain of rules", f"{HEADER}<b0>;\n{chain}<b5000> = yes;\n"
    yield "a.gram", "many ways to say it", HEADER + "(yes|no)* yes " + "(yes|no) " * 3000 + ";\n"
    yield "a.dict", "a word of 60 000 phones", "yes " + "AH N " * 30_000 + "\nno N OW\n"
    phones = ("AH", "N", "T", "IY")
    variants = (" ".join(phones[n >> 2 * i & 3] for i in range(9)) for n in range(120_000))
    many = "".join(f"yes({i}) {v}\n" for i, v in enumerate(variants))
    yield "a.dict", "120 000 variants", "no N OW\n" + many
    yield "a.dict", "a word that repeats itself", "no N OW\n" + "yes Y EH S\n" * 900_000
    yield "a.dict", "a long word", "no N OW\nyes Y EH S\n" + "x" * 5_000_000 + " AH\n"
    yield "a.dict", "unknown phones", "no N OW\nyes " + "\x1b[31m " * 10 + "\n"
    for count in ("9" * 5000, "²", "-1", "0", "49999999", "1e3"):
        yield "a.arpa", f"{count[:8]} 1-grams", ARPA.replace("ngram 1=5", f"ngram 1={count}")
    for number in ("nan", "-inf", "1e999", "1", "-1_0", "0x1"):
        yield "a.arpa", f"a probability of {number}", ARPA.replace("-0.7", number, 1)
    for order in (4, 5, 99):
        counts = "".join(f"\nngram {k}=0" for k in range(3, order + 1))
        text = ARPA.replace("\n\n", f"{counts}\n\n", 1)
        blocks = "".join(f"\\{k}-grams:\n\n" for k in range(3, order + 1))
        yield "a.arpa", f"order {order}", text.replace("\\end", f"{blocks}\\end")
    yield "a.arpa", "a long line", ARPA.replace("yes", "y" * 5_000_000)
