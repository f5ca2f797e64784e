"""C and H: from position-dependent phones to senones.

Kaldi's composition with a context transducer turns every phone label into a window of three; tying
maps windows to senone sequences. Each sequence is then spelled out as three arcs in series, which
is composition with H for a left-to-right HMM without skips. Self-loops come later, as in Kaldi.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.models.sphinx.mdef import POSITIONS, ModelDefinition
from pipelines.search.lexicon import PhoneLabels
from pipelines.search.openfst import Fst, from_arcs

SILENT_CONTEXT = 0
"""What composition with context writes for "no phone": before the first and after the last."""


def tie(
    fst: Fst, windows: Sequence[Sequence[int]], definition: ModelDefinition, labels: PhoneLabels
) -> tuple[Fst, NDArray[np.int32], NDArray[np.int64]]:
    """Relabel windows of phones by what they are tied to.

    Returns the transducer with labels 1 … n for senone sequences and n + 1 … for disambiguation
    symbols; sequences int32 [n, 3] of senones by label - 1; and the labels of the disambiguation
    symbols.
    """
    phones = np.zeros((len(windows), 3), dtype=np.int64)
    is_phone = np.zeros(len(windows), dtype=bool)
    symbol = np.zeros(len(windows), dtype=np.int64)
    for i, window in enumerate(windows):
        if len(window) == 3:
            phones[i], is_phone[i] = window, True
        elif len(window) == 1:
            # [-label] for a disambiguation symbol, [0] for the one that begins every path.
            symbol[i] = 1 + (labels.disambiguation.index(-window[0]) + 1 if window[0] else 0)
    base = np.where(phones == SILENT_CONTEXT, definition.silence, (phones - 1) // POSITIONS)
    position = (phones[:, 1] - 1) % POSITIONS
    left, centre, right = base.T
    sequence = np.where(
        definition.filler[centre],
        definition.ci_ssids[centre],
        definition.ssid[centre, left, right, position],
    )
    # Two state sequences with the same senones are one: transitions follow from the senones.
    rows, number = np.unique(definition.sseq[sequence[is_phone]], axis=0, return_inverse=True)
    label = np.zeros(len(windows), dtype=np.int32)
    label[is_phone] = 1 + number.reshape(-1)
    label[symbol > 0] = len(rows) + symbol[symbol > 0]
    tied = Fst(
        fst.start, fst.final, fst.first, label[fst.ilabel], fst.olabel, fst.weight, fst.target
    )
    return tied, rows.astype(np.int32), np.unique(label[symbol > 0]).astype(np.int64)


def spell(fst: Fst, sequences: NDArray[np.int32], first_symbol: int) -> Fst:
    """Replace each sequence label by its three senones (labels senone + 1) in series.

    Disambiguation labels become `first_symbol`, `first_symbol` + 1 … Arcs that end alike (same
    target, same last senones) share their states, which spares determinisation most of the work.
    """
    is_phone = (fst.ilabel > 0) & (fst.ilabel <= len(sequences))
    senones = sequences[fst.ilabel[is_phone] - 1].astype(np.int64) + 1
    source, target = fst.source, fst.target[is_phone].astype(np.int64)
    span = int(senones.max(initial=0)) + 1
    last_keys, last = np.unique(target * span + senones[:, 2], return_inverse=True)
    middle_keys, middle = np.unique(last * span + senones[:, 1], return_inverse=True)
    n = fst.n_states
    last_state = n + np.arange(len(last_keys))
    middle_state = n + len(last_keys) + np.arange(len(middle_keys))
    others = ~is_phone
    other_label = np.where(
        fst.ilabel[others] > len(sequences),
        fst.ilabel[others] - len(sequences) - 1 + first_symbol,
        0,
    )
    silent = np.zeros(len(middle_keys) + len(last_keys))
    return from_arcs(
        n + len(last_keys) + len(middle_keys),
        fst.start,
        np.concatenate([fst.final, np.full(len(silent), np.inf, dtype=np.float32)]),
        np.concatenate([source[is_phone], middle_state, last_state, source[others]]),
        np.concatenate([senones[:, 0], middle_keys % span, last_keys % span, other_label]),
        np.concatenate([fst.olabel[is_phone], silent, fst.olabel[others]]),
        np.concatenate([fst.weight[is_phone], silent, fst.weight[others]]),
        np.concatenate(
            [
                middle_state[middle],
                last_state[middle_keys // span],
                last_keys // span,
                fst.target[others],
            ]
        ),
    )
