"""The transition model at the front of `final.mdl`: HMM topologies, and what each transition-id stands for.

Kaldi's hmm/hmm-topology and hmm/transition-model: an HMM state of a phone with its pdfs is a *transition-state*; its
transitions are numbered through all of them from 1 on, and these transition-ids are the input labels of HCLG.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipelines.models.kaldi.binary import Reader
from profiler.arrays import F32, I32, Bool

MAX_PHONES = 1 << 16
MAX_STATES = 64  # HMM states of a phone; Kaldi's recipes have one to five
NO_PDF = -1  # pdf class of a state that emits nothing, and topology of a phone that there is not


@dataclass(frozen=True)
class State:
    """One HMM state: pdf classes of its forward transitions and of its self-loop, and (to, probability) of each."""

    forward: int
    loop: int
    transitions: tuple[tuple[int, float], ...]


Topology = tuple[State, ...]  # the states of a phone; the last one emits nothing


@dataclass(frozen=True, eq=False)
class TransitionModel:
    """Transition-ids and what they stand for; arrays over transition-ids are longer by one, 0 is none.

    `topologies`: of each phone by its number. `pdf`: int32, of each transition-id; `phone`, `state`, `forward`: int32,
    its phone, HMM state, and that state's pdf of forward transitions; `is_loop`: bool; `log_prob`: f32, natural log of
    its probability. `n_pdfs`: as many as are named.
    """

    topologies: dict[int, Topology]
    pdf: I32
    phone: I32
    state: I32
    forward: I32
    is_loop: Bool
    log_prob: F32
    n_pdfs: int

    @property
    def phones(self) -> list[int]:
        return sorted(self.topologies)

    @property
    def n_transitions(self) -> int:
        """Transition-ids, 1 … n."""
        return len(self.pdf) - 1

    def owners(self, n_pdfs: int, place: Mapping[int, int]) -> tuple[I32, I32]:
        """The phone, by its `place`, and HMM state of each pdf, int32 [n_pdfs]: of several that share it the first."""
        phones, states = np.zeros(n_pdfs, np.int32), np.zeros(n_pdfs, np.int32)
        for tid in range(self.n_transitions, 0, -1):
            if (at := place.get(int(self.phone[tid]))) is not None:
                phones[self.pdf[tid]], states[self.pdf[tid]] = at, self.state[tid]
        return phones, states


def read(reader: Reader) -> TransitionModel:
    """Read a transition model from where `reader` stands; ModelError when it is unsound."""
    reader.expect("<TransitionModel>")
    topologies = _topologies(reader)
    kind = reader.expect("<Tuples>", "<Triples>")
    width = 4 if kind == "<Tuples>" else 3
    # Of five bytes each.
    count = reader.integer("number of transition-states", 1, reader.left // (5 * width))
    columns: list[tuple[int, int, int, int, bool]] = [(NO_PDF, 0, 0, NO_PDF, False)]
    n_pdfs = 0
    for _ in range(count):
        phone = reader.integer("phone of a transition-state", 1, MAX_PHONES)
        if phone not in topologies:
            reader.wrong(f"a transition-state has phone {phone}, which has no topology")
        topology = topologies[phone]
        state = reader.integer("HMM state of a transition-state", 0, len(topology) - 1)
        if topology[state].forward == NO_PDF:
            reader.wrong(f"a transition-state has state {state} of phone {phone}, which emits nothing")
        forward = reader.integer("pdf of a transition-state")
        loop = reader.integer("pdf of a self-loop") if width == 4 else forward
        n_pdfs = max(n_pdfs, forward + 1, loop + 1)
        for target, _ in topology[state].transitions:
            columns.append((loop if target == state else forward, phone, state, forward, target == state))
    reader.expect(kind.replace("<", "</"))
    reader.expect("<LogProbs>")
    log_prob = reader.vector("transition probabilities")
    if len(log_prob) != len(columns):
        reader.wrong(f"it has {len(log_prob)} transition probabilities, its transition-ids are {len(columns)}")
    if (log_prob > 1e-3).any():
        reader.wrong("a transition probability is over 1")
    reader.expect("</LogProbs>")
    reader.expect("</TransitionModel>")
    *numbers, loops = map(np.array, zip(*columns, strict=True))
    pdf, phones, states, forwards = (column.astype(np.int32) for column in numbers)
    return TransitionModel(topologies, pdf, phones, states, forwards, loops, log_prob, n_pdfs)


def _topologies(reader: Reader) -> dict[int, Topology]:
    """Topologies by phone, in both forms: a count of −1 says that self-loops have pdf classes of their own."""
    reader.expect("<Topology>")
    phones = reader.integers("phones of the topology")
    place = reader.integers("places of the phones' topologies")
    count = reader.integer("number of topologies", -1, reader.left)
    own_loops = count == -1
    if own_loops:
        count = reader.integer("number of topologies", 0, reader.left)
    entries = [_topology(reader, own_loops) for _ in range(count)]
    reader.expect("</Topology>")
    if not len(phones) or (np.diff(phones) <= 0).any() or phones[0] < 1 or phones[-1] > MAX_PHONES:
        reader.wrong(f"the phones of the topology must ascend within 1 … {MAX_PHONES:,}")
    found: dict[int, Topology] = {}
    for phone in phones.tolist():
        at = int(place[phone]) if phone < len(place) else NO_PDF
        if not 0 <= at < count:
            reader.wrong(f"phone {phone} has topology {at}, there are {count}")
        found[phone] = entries[at]
    return found


def _topology(reader: Reader, own_loops: bool) -> Topology:
    states = []
    count = reader.integer("number of HMM states", 1, MAX_STATES)
    for _ in range(count):
        forward = reader.integer("pdf class", NO_PDF, MAX_STATES)
        loop = reader.integer("pdf class of a self-loop", NO_PDF, MAX_STATES) if own_loops else forward
        transitions = []
        for _ in range(reader.integer("number of transitions", 0, MAX_STATES)):
            target = reader.integer("target of a transition", 0, count - 1)
            transitions.append((target, reader.real("transition probability")))
        states.append(State(forward, loop, tuple(transitions)))
    return tuple(states)
