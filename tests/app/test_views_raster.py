"""The raster against areas worked out by hand."""

import numpy as np
import pytest

from app.charts.raster import HATCH_STRENGTH, hatch_cell, stacked
from app.style.theme import rgb

COLORS = ("#4060a0", "#d08020", "#30b080")


def parts(pixels: np.ndarray) -> np.ndarray:
    """Alpha, red, green, blue [4, height, width]."""
    return np.stack([pixels >> shift & 0xFF for shift in (24, 16, 8, 0)]).astype(float)


def test_each_layer_covers_its_share():
    random = np.random.default_rng(4)
    values = random.random((64, 3)) * np.array([0.4, 0.003, 0.5])
    height = 120
    got = parts(stacked(values, height, COLORS, "#000000")).sum(axis=1)
    wanted = np.array([[255.0, *rgb(color)] for color in COLORS])
    exact = (values * height) @ wanted
    # Half a grey level for each of up to six mixed pixels per column.
    assert np.abs(got - exact.T).max() <= 3.5


def test_whole_layers_have_exact_colours_from_the_bottom_up():
    pixels = stacked(np.tile([0.25, 0.25, 0.25], (5, 1)), 8, COLORS, "#000000")
    column = [f"#{int(p) & 0xFFFFFF:06x}" for p in pixels[:, 2]]
    assert column[6:] == [COLORS[0]] * 2
    assert column[4:6] == [COLORS[1]] * 2
    assert column[2:4] == [COLORS[2]] * 2
    assert (pixels[:2] == 0).all()


def test_no_data_draws_nothing_and_too_much_is_cut():
    values = np.full((3, 3), np.nan)
    values[1] = 5.0
    pixels = stacked(values, 10, COLORS, "#000000")
    assert (pixels[:, [0, 2]] == 0).all()
    assert (pixels[:, 1] >> 24 == 255).all()
    assert f"#{int(pixels[0, 1]) & 0xFFFFFF:06x}" == COLORS[0]


def test_hatches_differ_from_each_other_and_stay_quiet():
    names = ("solid", "diagonal", "back", "cross", "dots", "vertical", "horizontal", "dense")
    cells = {name: hatch_cell(name).tobytes() for name in names}
    assert len(set(cells.values())) == len(names)
    pixels = stacked(np.ones((16, 1)), 16, ["#808080"], "#000000", ["diagonal"])[1:]
    shades = set((pixels & 0xFF).ravel().tolist())
    assert shades == {0x80, round(0x80 * (1 - HATCH_STRENGTH))}
    share = np.mean((pixels & 0xFF) != 0x80)
    assert 0.1 < share < 0.4


@pytest.mark.parametrize("count", [0, 17])
def test_layers_are_limited(count):
    with pytest.raises(ValueError, match="1 to 16 layers"):
        stacked(np.zeros((4, count)), 4, ["#000000"] * count, "#ffffff")
