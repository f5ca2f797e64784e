"""Forced alignment: which senone each frame of an utterance belongs to, when its words are known.

The transcript becomes one linear HMM of triphones, with all pronunciations of each word as alternatives and a
silence that may stand before, between and after words; contexts reach across words, as in the search graph. The
Viterbi path through it (Rabiner 1989) is exact: a transcript has some hundred states, and none is pruned.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from pipelines.models.dictionary import Dictionary
from pipelines.models.sphinx.definition import BEGIN, END, INTERNAL, SINGLE, STATES, ModelDefinition
from profiler.arrays import F32, I32, Array, Bool, check_indices
from profiler.errors import BadInput

SILENT = -1  # number of the word to which a frame of silence belongs
NEVER = np.float32(-1e30)


class AlignmentError(BadInput):
    """An utterance that cannot be aligned with its words, in one sentence."""


class States(NamedTuple):
    """The HMM of one transcript: three states per unit (a phone in its context), in order of time.

    Per state: `senone`, `stay` and `leave`, log probabilities of its two transitions. Units that may come before unit
    u: `before[first[u] : first[u + 1]]`; `begins`, `ends`: whether an utterance may begin or end with a unit.
    """

    senone: I32
    stay: F32
    leave: F32
    before: I32
    first: I32
    begins: Bool
    ends: Bool


class TranscriptStates(NamedTuple):
    """The states of a transcript, and by unit `phone` and `word` int32 (SILENT for silence)."""

    states: States
    phone: I32
    word: I32


@dataclass(frozen=True, eq=False)
class Alignment:
    """Per frame int32: `senones`, CI `phones`, and the number of the `words` in the transcript (SILENT: none).

    `score`: log-likelihood of the path, nat, transitions included.
    """

    senones: Array
    phones: Array
    words: Array
    score: float


class Aligner:
    """Aligns utterances with their words, by one acoustic model's definition and one dictionary."""

    def __init__(self, definition: ModelDefinition, transitions: Array, words: Dictionary) -> None:
        """`transitions` f32 [matrices, 3, 4], probabilities."""
        self._definition = definition
        self._words = words
        self._phones = {name: number for number, name in enumerate(definition.phones)}
        with np.errstate(divide="ignore"):
            log = np.maximum(np.log(transitions), NEVER).astype(np.float32)
        states = np.arange(STATES)
        self._stay, self._leave = log[:, states, states], log[:, states, states + 1]

    def align(self, scores: Array, words: Sequence[str]) -> Alignment:
        """Align `scores` f32 [frames, senones], log-likelihoods in nat, with `words`.

        AlignmentError when a word has no pronunciation or the utterance is too short for its words.
        """
        states, phones, numbers = self.line(words)
        check_indices("senones", states.senone, scores.shape[1])
        path = np.empty(len(scores), np.int32)
        score = float(_viterbi(np.ascontiguousarray(scores, np.float32), states, path))
        if score <= NEVER / 2:
            raise AlignmentError(f"{len(scores)} frames are too few for the {len(words)} words of the transcript.")
        units = path // STATES
        return Alignment(states.senone[path], phones[units], numbers[units], score)

    def line(self, words: Sequence[str]) -> TranscriptStates:
        """The HMM of a transcript; AlignmentError for a word without a pronunciation."""
        built = _Builder(self._definition)
        number, choices = self._phones, []
        for word in words:
            prons = self._words.pronunciations.get(word, ())
            choices.append([tuple(number[ph] for ph in pron) for pron in prons if number.keys() >= set(pron)])
            if not choices[-1]:
                raise AlignmentError(f"The dictionary has no pronunciation of '{word}' for this model.")
        built.words(choices)
        phones, ssids, words_of = np.array(built.units, np.int32).T.copy()
        tmats = self._definition.tmats[phones]
        first = np.cumsum([0, *map(len, built.before)])
        states = States(
            senone=self._definition.sseq[ssids].astype(np.int32).ravel(),
            stay=self._stay[tmats].ravel(),
            leave=self._leave[tmats].ravel(),
            before=np.array([u for before in built.before for u in before], np.int32),
            first=first.astype(np.int32),
            begins=np.array(built.begins),
            ends=np.array(built.ends),
        )
        return TranscriptStates(states, phones, words_of)


class _Builder:
    """Puts units one after another; contexts across words make copies of the outer phones."""

    def __init__(self, definition: ModelDefinition) -> None:
        self._definition = definition
        self._silence = definition.silence
        self.units: list[tuple[int, int, int]] = []  # phone, state sequence, word
        self.before: list[list[int]] = []
        self.begins: list[bool] = []
        self.ends: list[bool] = []

    def words(self, choices: list[list[tuple[int, ...]]]) -> None:
        """All words, each with its pronunciations, and the silences about them."""
        silence = self._silence
        # Units that end what came before, by (last phone, right context that they expect).
        open_ends: dict[tuple[int, int], list[int]] = {}
        pause = self._unit(silence, self._definition.ci_ssid(silence), SILENT, [])
        self.begins[pause] = True
        for number, prons in enumerate(choices):
            following = choices[number + 1] if number + 1 < len(choices) else []
            rights = sorted({silence, *(pron[0] for pron in following)})
            ended: dict[tuple[int, int], list[int]] = defaultdict(list)
            for pron in dict.fromkeys(prons):
                entries = {silence: [pause]}
                for (last, right), units in open_ends.items():
                    if right == pron[0]:
                        entries.setdefault(last, []).extend(units)
                for right, units in self._word(pron, number, entries, rights):
                    ended[pron[-1], right] += units
            into_pause = [u for (_, right), us in ended.items() if right == silence for u in us]
            pause = self._unit(silence, self._definition.ci_ssid(silence), SILENT, into_pause)
            open_ends = ended
        self.ends[pause] = True
        for unit in itertools.chain(*open_ends.values()):
            self.ends[unit] = True

    def _word(
        self, pron: tuple[int, ...], number: int, entries: dict[int, list[int]], rights: list[int]
    ) -> list[tuple[int, list[int]]]:
        """Units of one pronunciation after `entries` (left context → units); its ends by right context."""
        if len(pron) == 1:
            return [
                (right, [self._phone(pron[0], left, right, SINGLE, number, before) for left, before in entries.items()])
                for right in rights
            ]
        units = [self._phone(pron[0], left, pron[1], BEGIN, number, before) for left, before in entries.items()]
        for left, phone, right in zip(pron, pron[1:], pron[2:], strict=False):
            units = [self._phone(phone, left, right, INTERNAL, number, units)]
        last, left = pron[-1], pron[-2]
        return [(right, [self._phone(last, left, right, END, number, units)]) for right in rights]

    def _phone(self, phone: int, left: int, right: int, position: int, number: int, before: list[int]) -> int:
        unit = self._unit(phone, self._definition.triphone(phone, left, right, position), number, before)
        self.begins[unit] = number == 0 and position in (BEGIN, SINGLE)
        return unit

    def _unit(self, phone: int, ssid: int, word: int, before: list[int]) -> int:
        self.units.append((phone, ssid, word))
        self.before.append(before)
        self.begins.append(False)
        self.ends.append(False)
        return len(self.units) - 1


@njit(nogil=True, cache=True)
def _viterbi(scores: F32, line: States, path: I32) -> float:
    """Fill `path` int32 [frames] with the best state of each frame; returns its log-likelihood."""
    senone, stay, leave, before, first, begins, ends = line
    frames, states = len(scores), len(senone)
    value = np.full(states, NEVER, np.float32)
    former = np.empty(states, np.float32)
    source = np.empty((frames, states), np.int32)
    for t in range(frames):
        value, former = former, value
        for state in range(states):
            best, origin = former[state] + stay[state], state
            if state % STATES:
                other = former[state - 1] + leave[state - 1]
                if other > best:
                    best, origin = other, state - 1
            else:
                unit = state // STATES
                if t == 0 and begins[unit]:
                    best = np.float32(0)
                for i in range(first[unit], first[unit + 1]):
                    end = before[i] * STATES + STATES - 1
                    other = former[end] + leave[end]
                    if other > best:
                        best, origin = other, end
            # Impossible stays impossible, however many frames are added.
            value[state] = max(best + scores[t, senone[state]], NEVER)
            source[t, state] = origin
    best, state = NEVER, 0
    for unit in range(len(ends)):
        end = unit * STATES + STATES - 1
        if ends[unit] and value[end] + leave[end] > best:
            best, state = value[end] + leave[end], end
    for t in range(frames - 1, -1, -1):
        path[t] = state
        state = source[t, state]
    return best  # type: ignore[no-any-return]
