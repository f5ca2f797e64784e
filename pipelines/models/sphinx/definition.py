"""The model definition of a CMUSphinx model: phones, triphones, senone sequences; and its file `mdef`.

The file has a binary form (`BMDF`, version 1) and one of text, version 0.3: as SphinxTrain writes it, a line `0.3`, six
lines `count name`, then one line per phone, `base left right position attribute tmat senone senone senone N`, CI phones
first. The fall-back chain of Sphinx-3 and pocketsphinx is resolved once for all contexts.
"""

import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.sphinx.binary import LARGEST_DEFINITION, Cursor, read_file
from profiler.arrays import Array

# Word positions as the file numbers them.
INTERNAL, BEGIN, END, SINGLE = range(4)
POSITIONS = 4
# Emitting states of a phone: all large CMUSphinx models have three. Others (tidigits: five) also skip states.
STATES = 3
# Phone indices are 8 bits in the file; the resolved triphone table takes 16 bytes × phones³.
MAX_PHONES = 128
MAX_SENONES = 65_536  # senone numbers are 16 bits in the file
SILENCE = "SIL"  # the phone that pocketsphinx looks up by this name


@dataclass(frozen=True, eq=False)
class ModelDefinition:
    """Phones, triphones and the tying of their states to senones.

    `phones`: names of the CI phones [n_ci]; `filler`: bool [n_ci]; `silence`: index of `SIL`; `sseq`: uint16 [n_sseq,
    3], senones of each state sequence; `senone_phone`: int32 [n_senones], the CI phone of each senone; `senone_state`:
    int32 [n_senones], its state 0…2; `ssid`: int32 [n_ci, n_ci, n_ci, 4], the state sequence of (base, left, right,
    position) after the fall-back chain; `ci_ssids`, `tmats`: int32 [n_ci]. `stand_ins`: senones that take the place
    of context-independent ones in a model without (Kaldi's, which has no state sequences either).
    """

    phones: list[str]
    n_senones: int
    senone_phone: Array
    senone_state: Array
    filler: Array
    silence: int = 0
    sseq: Array = field(default_factory=lambda: np.empty((0, STATES), np.uint16))
    ssid: Array = field(default_factory=lambda: np.empty((0, 0, 0, POSITIONS), np.int32))
    ci_ssids: Array = field(default_factory=lambda: np.empty(0, np.int32))
    tmats: Array = field(default_factory=lambda: np.empty(0, np.int32))
    n_ci_senones: int = 0
    n_tmat: int = 0
    n_triphones: int = 0
    stand_ins: tuple[int, ...] = ()

    @property
    def n_ci(self) -> int:
        return len(self.phones)

    def phone(self, name: str) -> int:
        """Index of the CI phone `name`; KeyError when the model has none."""
        try:
            return self.phones.index(name)
        except ValueError:
            raise KeyError(name) from None

    def triphone(self, base: int, left: int, right: int, position: int) -> int:
        """State sequence of a triphone at INTERNAL, BEGIN, END or SINGLE; with a negative context that of the CI phone.

        An unseen triphone falls back as in pocketsphinx: a filler context counts as silence; then the other word
        positions; then silence for the outer context at a word's edge; then the CI phone.
        """
        return self.ci_ssid(base) if min(left, right) < 0 else int(self.ssid[base, left, right, position])

    def ci_ssid(self, phone: int) -> int:
        return int(self.ci_ssids[phone])


def assemble(
    path: Path,
    phones: tuple[list[str], Array],
    ssids: Array,
    tmats: Array,
    contexts: Array,
    sseq: Array,
    counts: tuple[int, int, int],
) -> ModelDefinition:
    """Check the parts of a definition against each other and resolve the triphones.

    `phones`: names and fillers of CI phones. `ssids`, `tmats` [n_phone] cover these first; `contexts` [n_phone − n_ci,
    4] are (position, base, left, right) of the others. `counts`: of senones, CI senones, and transition matrices.
    """
    (names, filler), (n_senones, n_ci_senones, n_tmat) = phones, counts
    n_ci = len(names)
    if len(set(names)) != n_ci:
        raise ModelError(f"{path}: a phone name occurs twice")
    if SILENCE not in names:
        raise ModelError(f"{path}: there is no phone {SILENCE}, which the search needs")
    _within(path, "a phone's senone sequence", ssids, len(sseq))
    _within(path, "a phone's transition matrix", tmats, n_tmat)
    _within(path, "a senone of a sequence", sseq, n_senones)
    _within(path, "a triphone's word position", contexts[:, 0], POSITIONS)
    _within(path, "a triphone's phone", contexts[:, 1:], n_ci)
    silence = names.index(SILENCE)
    ci_of_phone = np.concatenate([np.arange(n_ci), contexts[:, 1]])
    # Unused senones keep the silence phone: nothing asks for them. A senone that several base
    # phones share belongs to the first, as in pocketsphinx; so write the first one last.
    senone_phone = np.full(n_senones, silence, np.int32)
    senone_state = np.zeros(n_senones, np.int32)
    for state in range(STATES):
        senone_state[sseq[:, state]] = state
    senone_phone[sseq[ssids[::-1]]] = ci_of_phone[::-1, None]
    return ModelDefinition(
        phones=names,
        filler=np.asarray(filler, bool),
        silence=silence,
        n_senones=n_senones,
        n_ci_senones=n_ci_senones,
        n_tmat=n_tmat,
        n_triphones=len(contexts),
        sseq=np.ascontiguousarray(sseq, np.uint16),
        senone_phone=senone_phone,
        senone_state=senone_state,
        ssid=_resolve(contexts, ssids, np.asarray(filler, bool), silence),
        ci_ssids=np.ascontiguousarray(ssids[:n_ci], np.int32),
        tmats=np.ascontiguousarray(tmats[:n_ci], np.int32),
    )


def _within(path: Path, field: str, values: Array, limit: int) -> None:
    outside = values[(values < 0) | (values >= limit)]
    if outside.size:
        raise ModelError(f"{path}: {field} is {outside.max()}, expected 0 to {limit - 1}")


def _resolve(contexts: Array, ssids: Array, filler: Array, silence: int) -> Array:
    """State sequences int32 [base, left, right, position] with the fall-back chain applied."""
    n_ci = len(filler)
    exact = np.full((n_ci, n_ci, n_ci, POSITIONS), -1, np.int32)
    position, base, left, right = contexts.T
    exact[base, left, right, position] = ssids[n_ci:]
    as_silence = np.where(filler, silence, np.arange(n_ci))
    exact = exact[:, as_silence][:, :, as_silence]

    def any_position(table: Array) -> Array:
        result = table.copy()
        for other in range(POSITIONS):
            np.copyto(result, table[..., other : other + 1], where=result < 0)
        return result

    resolved = any_position(exact)
    alone, every = slice(silence, silence + 1), slice(None)
    for position in (BEGIN, END, SINGLE):
        # At a word's edge the context across it is unknown to training: try silence there.
        outer = exact[:, every if position == END else alone, every if position == BEGIN else alone]
        at_edge = np.broadcast_to(any_position(outer)[..., position], exact.shape[:3])
        np.copyto(resolved[..., position], at_edge, where=resolved[..., position] < 0)
    fallback = ssids[:n_ci].astype(np.int32)[:, None, None, None]
    return np.where(resolved < 0, fallback, resolved).astype(np.int32)


def read(path: Path) -> ModelDefinition:
    """Read a model definition, binary or text; ModelError says what is wrong."""
    data = read_file(path, LARGEST_DEFINITION)
    if data[:4] in (b"BMDF", b"FDMB"):
        return _read_binary(data, path)
    first = (line.strip() for line in data[:4096].splitlines() if line.strip() and not line.startswith(b"#"))
    if next(first, b"") == VERSION.encode():
        return _parse(data, path)
    raise ModelError(f"{path} is not a model definition: it begins neither with BMDF nor with 0.3")


def _read_binary(data: bytes, path: Path) -> ModelDefinition:
    cursor = Cursor(data, path, big_endian=data[:4] == b"FDMB")
    cursor.take(4, "magic")
    version = cursor.i32("version", -(2**31))
    if version != 1:
        raise ModelError(f"{path}: version is {version}, only version 1 is known")
    cursor.take(cursor.i32("description length"), "description")
    n_ci = cursor.i32("number of CI phones", 1, MAX_PHONES)
    n_phone = cursor.i32("number of phones", n_ci)
    states = cursor.i32("number of emitting states", 1, 64)
    if states != STATES:
        raise ModelError(f"{path}: its phones have {states} emitting states; models with {STATES} are read")
    n_ci_senones = cursor.i32("number of CI senones", 1, MAX_SENONES)
    n_senones = cursor.i32("number of senones", n_ci_senones, MAX_SENONES)
    n_tmat = cursor.i32("number of transition matrices", 1)
    n_sseq = cursor.i32("number of senone sequences", 1)
    cursor.i32("phones of context", 1, 3)
    n_tree = cursor.i32("nodes of the triphone tree")
    cursor.i32("silence phone", -1, n_ci - 1)  # looked up by name, as pocketsphinx does
    start = cursor.at
    names = [_name(cursor) for _ in range(n_ci)]
    cursor.take(-(cursor.at - start) % 4, "padding of the phone names")
    cursor.take(8 * n_tree, "triphone tree")  # holds nothing that the phone list does not say
    raw = cursor.take(12 * n_phone, "phone list")
    words = np.frombuffer(raw, cursor.order + "i4").reshape(n_phone, 3).astype(np.int32)
    attributes = np.frombuffer(raw, np.uint8).reshape(n_phone, 12)[:, 8:]
    cells = cursor.i32("size of the senone sequences")
    if cells != n_sseq * STATES:
        raise ModelError(f"{path}: size of the senone sequences is {cells}, expected {n_sseq} × {STATES}")
    sseq = cursor.array("u2", cells, "senone sequences").reshape(n_sseq, STATES)
    cursor.finished("senone sequences")
    return assemble(
        path,
        (names, attributes[:n_ci, 0] != 0),
        words[:, 0],
        words[:, 1],
        attributes[n_ci:].astype(np.int64),
        sseq,
        (n_senones, n_ci_senones, n_tmat),
    )


def _name(cursor: Cursor) -> str:
    end = cursor.data.find(b"\0", cursor.at)
    raw = cursor.data[cursor.at : max(end, cursor.at)]
    if end < 0 or not raw or not raw.isascii() or not raw.decode("ascii").isprintable():
        raise ModelError(f"{cursor.path}: the phone names are cut short or not text")
    cursor.at = end + 1
    return raw.decode("ascii")


VERSION = "0.3"
COUNTS = ("n_base", "n_tri", "n_state_map", "n_tied_state", "n_tied_ci_state", "n_tied_tmat")
POSITION_LETTERS = {letter: number for number, letter in enumerate("ibes")}
LONGEST_LINE = 4096
COLUMNS = 6 + STATES + 1


def _parse(data: bytes, path: Path) -> ModelDefinition:
    lines = _lines(data, path)
    next(lines)  # the version
    counts: dict[str, int] = {}
    for number, fields in islice(lines, len(COUNTS)):
        if len(fields) != 2 or fields[1] not in COUNTS:
            raise ModelError(f"{path}, line {number}: expected a count and one of {COUNTS}")
        counts[fields[1]] = _integer(fields[0], path, number)
    if len(counts) != len(COUNTS):
        raise ModelError(f"{path}: the counts at the head are incomplete")
    for name, most in (("n_base", MAX_PHONES), ("n_tied_state", MAX_SENONES)):
        if not 1 <= counts[name] <= most:
            raise ModelError(f"{path}: {name} is {counts[name]}, expected 1 to {most}")
    n_ci, promised = counts["n_base"], counts["n_base"] + counts["n_tri"]
    index: dict[str, int] = {}
    names: list[str] = []
    filler: list[bool] = []
    sequences: dict[tuple[int, ...], int] = {}
    # Flat, and of as many rows as there are, whatever the head promises.
    contexts, ssids, tmats = array("i"), array("i"), array("i")
    for number, fields in lines:
        if len(ssids) == promised:
            raise ModelError(f"{path}: more phones than n_base + n_tri promises, {promised}")
        if len(fields) != COLUMNS:
            raise ModelError(
                f"{path}, line {number}: {len(fields)} columns, expected {COLUMNS}: models whose phones have "
                f"{STATES} emitting states are read"
            )
        if len(names) < n_ci:
            index[fields[0]] = len(names)
            names.append(fields[0])
            filler.append(fields[4] == "filler")
        else:
            try:
                contexts.append(POSITION_LETTERS[fields[3]])
                contexts.extend(index[name] for name in fields[:3])
            except KeyError as error:
                raise ModelError(f"{path}, line {number}: {error} is no phone or position") from None
        senones = tuple(_integer(field, path, number) for field in fields[6 : 6 + STATES])
        if max(senones) >= counts["n_tied_state"]:
            raise ModelError(f"{path}, line {number}: senone {max(senones)} is not below n_tied_state")
        ssids.append(sequences.setdefault(senones, len(sequences)))
        tmats.append(_integer(fields[5], path, number))
    if len(ssids) != promised:
        raise ModelError(f"{path}: {len(ssids)} phones, n_base + n_tri promises {promised}")
    return assemble(
        path,
        (names, np.array(filler)),
        np.array(ssids, np.int32),
        np.array(tmats, np.int32),
        np.array(contexts, np.int64).reshape(-1, 4),
        np.array(list(sequences), np.uint16).reshape(-1, STATES),
        (counts["n_tied_state"], counts["n_tied_ci_state"], counts["n_tied_tmat"]),
    )


def _lines(data: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is neither empty nor a comment, one at a time."""
    if not data.isascii():
        raise ModelError(f"{path}: a text model definition must be plain ASCII")
    for number, line in enumerate(io.TextIOWrapper(io.BytesIO(data), "ascii"), 1):
        if len(line) > LONGEST_LINE:
            raise ModelError(f"{path}, line {number}: more than {LONGEST_LINE} characters")
        if line.strip() and not line.startswith("#"):
            yield number, line.split()


def _integer(field: str, path: Path, number: int) -> int:
    # Nine digits fit 32 bits; int() alone would also take "1_0", signs and thousands of digits.
    if not (field.isdigit() and len(field) <= 9):
        raise ModelError(f"{path}, line {number}: {field[:20]!r} is not a count")
    return int(field)
