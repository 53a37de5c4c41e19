"""Pictures of runs."""

import math
from pathlib import Path

from matplotlib.image import imread

from lit_byz.report.figures import run_figures

HISTORY = {
    "test/accuracy": [(step, 1 - math.exp(-step / 100)) for step in range(49, 500, 50)],
    "clip/threshold": [(step, 2 * math.exp(-step / 300)) for step in range(500)],
    "honest/mean_norm": [(step, math.exp(-step / 200)) for step in range(500)],
    "honest/max_norm": [(step, 3 * math.exp(-step / 250)) for step in range(500)],
    "attack/damage": [(step, 0.4 * math.exp(-step / 250)) for step in range(500)],
}


def ink(path: Path) -> float:
    """The share of pixels that are not white."""
    pixels = imread(path)[..., :3]
    return float((pixels < 0.95).any(-1).mean())


def test_both_figures(tmp_path: Path) -> None:
    made = run_figures(HISTORY, "digits, extreme, f=1", tmp_path / "new")
    assert [path.name for path in made] == ["accuracy.png", "norms.png"]
    for path in made:
        assert imread(path).shape[:2] == (504, 840)
        assert ink(path) > 0.01


def test_damage_and_its_limits(tmp_path: Path) -> None:
    bounded = {**HISTORY, "attack/bound": [(s, 1.5) for s in range(500)]}
    bounded["attack/strongest_damage"] = [(s, 0.8) for s in range(0, 500, 10)]
    made = run_figures(bounded, "digits", tmp_path / "three")
    assert [path.name for path in made] == ["accuracy.png", "norms.png", "damage.png"]
    alone = {k: v for k, v in bounded.items() if k != "attack/strongest_damage"}
    assert ink(run_figures(alone, "digits", tmp_path / "two")[2]) < ink(made[2])


def test_without_clipping(tmp_path: Path) -> None:
    """No threshold to draw: one line less."""
    bare = {key: points for key, points in HISTORY.items() if key != "clip/threshold"}
    whole = ink(run_figures(HISTORY, "", tmp_path / "whole")[1])
    assert ink(run_figures(bare, "", tmp_path / "bare")[1]) < whole


def test_what_is_missing_is_not_drawn(tmp_path: Path) -> None:
    assert run_figures({}, "", tmp_path) == []
    short = {"test/accuracy": [(0, 0.1)], "honest/mean_norm": []}
    assert [path.name for path in run_figures(short, "", tmp_path)] == ["accuracy.png"]


def test_titles_have_room(tmp_path: Path) -> None:
    """The longest that runs have is two lines."""
    for title in ("one line", "mnist, extreme heterogeneity\nadaptive robust clipping (ARC)"):
        for path in run_figures(HISTORY, title, tmp_path):
            dark = (imread(path)[..., :3] < 0.95).any(-1)
            assert not dark[:6].any()
            assert dark[:40].any()
            assert not dark[:, :3].any()
            assert not dark[-3:].any()
