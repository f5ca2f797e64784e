"""A model definition: phones, triphones, senone sequences, transition matrices; checked, whatever file it came from.

The triphone look-up follows the fall-back chain of Sphinx-3 and pocketsphinx and is resolved once
for all contexts, so that a graph compiler can use it as an array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipelines.models.errors import ModelError
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
