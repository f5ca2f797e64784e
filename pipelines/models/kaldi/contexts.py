"""Phones in context for the graph compiler, from the tree and the topologies of a Kaldi model.

The place of a sequence of senones is taken by a row (phone, pdf of each HMM state), which says all of a phone's HMM:
its transitions depend on the phone too. Of phones that know their place in a word (`AA_B AA_I AA_E AA_S`) a dictionary
has the names without it. Of a neighbour only the side of the word boundary is known: where a tree asks for more, I
stands for B before and for E after a phone, and across a boundary E and B stand for S.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
from pipelines.models.kaldi import gmm, transitions, tree
from pipelines.models.kaldi.binary import Reader
from pipelines.models.kaldi.transitions import TransitionModel
from pipelines.models.kaldi.tree import NONE, Tree
from pipelines.models.sphinx.binary import read_file
from pipelines.models.sphinx.definition import BEGIN, END, INTERNAL, MAX_PHONES, POSITIONS, SINGLE, ModelDefinition
from profiler.arrays import F32, I32
from profiler.files.inputs import lines_of
from profiler.plain import one_line

FILES = ("final.mdl", "tree", "phones.txt")
SUFFIXES = ("_I", "_B", "_E", "_S")  # of phones at each place in a word: INTERNAL, BEGIN, END, SINGLE
LEFT = {INTERNAL: INTERNAL, BEGIN: END, END: INTERNAL, SINGLE: END}
RIGHT = {INTERNAL: INTERNAL, BEGIN: INTERNAL, END: BEGIN, SINGLE: BEGIN}
"""The place of a neighbour in its word, by that of the phone."""
SILENCE = "sil"
FILLERS = frozenset({SILENCE, "spn", "nsn", "lau", "sp"})  # phones that are no speech, in small letters


@dataclass(frozen=True, eq=False)
class Hmms:
    """HMMs by number: `size` int32 [n], states of each; `pdfs` int32 [n, M]; `cost` f32 [n, M, M + 1]: −ln of the
    probability of going from a state to another, the last column is the end; inf where there is no transition."""

    size: I32
    pdfs: I32
    cost: F32


@dataclass(frozen=True, eq=False)
class Contexts:
    """`definition`, whose state sequences are rows (phone, pdf of each state, −1 behind the last)."""

    definition: ModelDefinition
    model: TransitionModel
    n_pdfs: int

    def hmms(self, rows: I32) -> Hmms:
        """The HMM of each of `rows` int32 [n, 1 + M]."""
        model, n, most = self.model, len(rows), rows.shape[1] - 1
        costs: dict[tuple[int, int, int], list[float]] = {}
        for tid in range(1, model.n_transitions + 1):
            key = int(model.phone[tid]), int(model.state[tid]), int(model.forward[tid])
            costs.setdefault(key, []).append(-float(model.log_prob[tid]))
        cost = np.full((n, most, most + 1), np.inf, np.float32)
        for at, (phone, *pdfs) in enumerate(rows.tolist()):
            topology = model.topologies[phone]
            for state, pdf in enumerate(pdfs[: len(topology) - 1]):
                each = costs.get((phone, state, pdf))
                if each is None:
                    raise ModelError(f"final.mdl has no transitions of state {state} of phone {phone} with pdf {pdf}")
                for (target, _), value in zip(topology[state].transitions, each, strict=True):
                    cost[at, state, most if target == len(topology) - 1 else target] = value
        return Hmms((rows[:, 1:] >= 0).sum(1).astype(np.int32), rows[:, 1:], cost)


def read(directory: Path) -> Contexts:
    """Read the model in `directory`; ModelError if no graph can be built for it."""
    reader = Reader.of(directory / "final.mdl")
    model = transitions.read(reader)
    _, n_pdfs = gmm.header(reader)
    decisions = tree.read(Reader.of(directory / "tree"))
    names = read_symbols(directory / "phones.txt")
    if max(model.n_pdfs, decisions.n_pdfs) > n_pdfs or model.phones[-1] >= len(names):
        raise ModelError(f"{directory}: final.mdl, tree and phones.txt are not of one model")
    if decisions.width not in (1, 3) or decisions.centre != decisions.width // 2:
        raise ModelError(
            f"{directory}: its tree looks at {decisions.width} phones around place {decisions.centre}; graphs are "
            "compiled for monophones and triphones"
        )
    variants = _variants({names[phone]: phone for phone in model.phones})
    phones = list(variants)
    filler = np.array([name.lower() in FILLERS for name in phones])
    silence = next((i for i, name in enumerate(phones) if name.lower() == SILENCE), NONE)
    if silence == NONE or filler.all() or len(phones) > MAX_PHONES:
        raise ModelError(
            f"{directory / 'phones.txt'}: a graph needs a phone called {SILENCE} or SIL and "
            f"1 to {MAX_PHONES - 1} others"
        )
    number = np.array(list(variants.values()), np.int32)
    sequences, ssid, ci = _sequences(directory, model, decisions, number)
    place = {int(phone): at for at, row in enumerate(number) for phone in row}
    owners = model.owners(n_pdfs, place)
    definition = ModelDefinition(
        phones, n_pdfs, *owners, filler, silence, sequences, ssid, ci, np.zeros(len(phones), np.int32)
    )
    return Contexts(definition, model, n_pdfs)


def _variants(numbers: Mapping[str, int]) -> dict[str, list[int]]:
    """The number of each phone at each place in a word, by its name without it."""
    found: dict[str, list[int]] = {}
    for name in numbers:
        base = name[:-2] if name[-2:] in SUFFIXES else name
        places = [numbers.get(base + suffix, NONE) for suffix in SUFFIXES]
        if base in numbers:  # silence is said alone, whatever else there is of it
            places = [numbers[base]] * POSITIONS
        elif NONE in places:
            base, places = name, [numbers[name]] * POSITIONS
        found[base] = places
    return found


def _sequences(directory: Path, model: TransitionModel, decisions: Tree, number: I32) -> tuple[I32, I32, I32]:
    """Rows of all HMMs; their numbers int32 [phones, left, right, positions]; and those without neighbours [phones]."""
    n, most = len(number), max(map(len, model.topologies.values())) - 1
    # Most models' phones do not know their place in a word.
    positions = 1 if (number == number[:, :1]).all() else POSITIONS
    rows = np.full((n, n, n, positions, 1 + most), NONE, np.int32)
    alone = np.full((n, 1 + most), NONE, np.int32)
    windows = np.zeros((n, n, 3), np.int32)
    for at, position in np.ndindex(n, positions):
        phone = int(number[at, position])
        windows[:, :, 0] = number[:, LEFT[position]][:, None]
        windows[:, :, 1] = phone
        windows[:, :, 2] = number[:, RIGHT[position]]
        seen = windows.reshape(-1, 3)[:, 1:2] if decisions.width == 1 else windows.reshape(-1, 3)
        single = np.zeros((1, decisions.width), np.int32)
        single[0, decisions.centre] = phone
        rows[at, :, :, position, 0] = alone[at, 0] = phone
        for i, state in enumerate(model.topologies[phone][:-1]):
            rows[at, :, :, position, 1 + i] = decisions.pdfs(seen, state.forward).reshape(n, n)
            alone[at, 1 + i] = decisions.pdfs(single, state.forward)[0]
            if state.forward == NONE or min(rows[at, :, :, position, 1 + i].min(), alone[at, 1 + i]) == NONE:
                raise ModelError(f"{directory}: the tree has no pdf for state {i} of phone {phone} in some context")
    flat = np.concatenate([rows.reshape(-1, 1 + most), alone])
    sequences, places = np.unique(flat, axis=0, return_inverse=True)
    which: I32 = places.reshape(-1).astype(np.int32)
    by_context = np.broadcast_to(which[:-n].reshape(n, n, n, positions), (n, n, n, POSITIONS))
    return sequences.astype(np.int32), by_context, which[-n:]


LARGEST_TABLE = 64 << 20  # bytes; a table of a million words has about fifteen
MOST_SYMBOLS = 4_000_000  # the largest number of a symbol


def read_symbols(path: Path) -> list[str]:
    """The names by their numbers, "" where there is none, of OpenFst's text form, a name and its number a line."""
    found: dict[int, str] = {}
    for number, line in enumerate(lines_of(read_file(path, LARGEST_TABLE).decode("utf-8", "replace")), start=1):
        # At ASCII blanks alone: others are part of a name.
        fields = [field for field in line.replace("\t", " ").split(" ") if field]
        if not fields:
            continue
        at = fields[-1]
        if len(fields) != 2 or not (at.isascii() and at.isdigit() and len(at) < 9 and int(at) <= MOST_SYMBOLS):
            raise ModelError(f"{path}: line {number:,} is not a symbol and its number: {one_line(line, 60)}")
        found[int(at)] = fields[0]
    if not found:
        raise ModelError(f"{path} has no symbols")
    return [found.get(number, "") for number in range(max(found) + 1)]
