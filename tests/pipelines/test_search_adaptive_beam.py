"""The adaptive beam against a made-up machine whose time per frame follows the beam, on a clock of its own."""

import math

import numpy as np
import pytest
from search_graphs import random_graph, settings, smooth_scores

from pipelines.search.adaptive_beam import MIN_BEAM, AdaptiveBeam
from pipelines.search.viterbi import Viterbi
from tests.each import each

FRAMES = 16


def machine(beam, growth=0.3, fixed=0.01, at_13=0.05):
    """Real-time factor: scoring and the rest, and a search that grows with the beam."""
    return fixed + at_13 * math.exp(growth * (beam - 13.0))


def drive(target, blocks=400, load=lambda second: 1.0, widest=13.0, **plant):
    """Real-time factor and beam of each block under the adaptive beam."""
    adaptive = AdaptiveBeam()
    beam, history = widest, []
    for block in range(blocks):
        rtf = machine(beam, **plant) * load(block * FRAMES / 100)
        history.append((rtf, beam))
        beam = adaptive.after(FRAMES, round(rtf * FRAMES * 1e7), target, widest)
    return np.array(history)


@each("growth", [0.2, 0.3, 0.45])
@each("target", [0.02, 0.03, 0.045])
def test_the_target_factor_is_held(target, growth):
    rtf, beam = drive(target, growth=growth).T
    settled = rtf[100:]
    assert settled.mean() == pytest.approx(target, rel=0.03)
    assert settled.std() < 0.05 * target
    assert (beam >= MIN_BEAM).all()


def test_the_beam_stays_within_its_bounds():
    assert drive(10.0)[-1, 1] == 13.0
    assert drive(0.001)[-1, 1] == MIN_BEAM
    # A person who asks for less than the least beam gets that.
    assert drive(0.001, widest=2.0)[-1, 1] == 2.0


def test_a_busy_spell_narrows_the_beam_and_its_end_widens_it_again():
    rtf, beam = drive(0.045, load=lambda second: 2.0 if 20 <= second < 40 else 1.0).T
    seconds = np.arange(len(beam)) * FRAMES / 100
    during = beam[(seconds > 30) & (seconds < 40)].mean()
    after = beam[seconds > 50].mean()
    assert during < after - 2.0
    assert rtf[(seconds > 30) & (seconds < 40)].mean() == pytest.approx(0.045, rel=0.05)
    assert rtf[seconds > 55].mean() == pytest.approx(0.045, rel=0.05)


def test_the_search_uses_what_the_adaptive_beam_sets():
    graph = random_graph(3, all_final=True)
    decoder = Viterbi(graph, settings(beam=9.0, adaptive_beam=True, target_rtf=0.1))
    assert decoder.beam == 9.0
    decoder.start(0)
    decoder.advance(smooth_scores(3, 4, graph.n_senones), 0)
    decoder.spent(4, 10**9)
    narrow = decoder.beam
    assert MIN_BEAM <= narrow < 9.0
    # Other live settings leave it alone, a smaller beam does not; without it the settings' holds.
    decoder.configure(settings(beam=9.0, adaptive_beam=True, target_rtf=0.2, max_active=500))
    assert decoder.beam == narrow
    decoder.configure(settings(beam=1.5, adaptive_beam=True, target_rtf=0.2))
    assert decoder.beam == 1.5
    decoder.configure(settings(beam=9.0))
    assert decoder.beam == 9.0
    decoder.spent(4, 10**9)
    assert decoder.beam == 9.0
