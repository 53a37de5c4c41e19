"""Every figure: three formats, labels with units, names in words, bounds as in the table."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lit_byz.report.drawing import FORMATS, chance_of, pictures
from lit_byz.report.figures import accuracy_curve, run_figures
from lit_byz.report.worst_case_figure import figure
from tests.report._results import Known, make_cell
from tests.report.test_figures import HISTORY, ink

CELLS = [
    make_cell("clip=arc", {"sf": {1: 0.9, 2: 0.92}, "foe": {1: 0.8, 2: 0.82}}),
    make_cell("clip=static, clip.C=0.2", {"sf": {1: 0.7}, "foe": {1: ">= 0.75"}}),
    make_cell("clip=none", {"sf": {1: 0.6}, "foe": {1: "failed"}, "alie": {1: None}}),
    make_cell("rule=gm", {"sf": {1: "failed"}, "foe": {1: "failed"}}),
]


def texts(path: Path) -> list[str]:
    """All that is written in an SVG: matplotlib draws letters, and says beside what they are."""
    return re.findall(r"<!-- (.*?) -->", path.with_suffix(".svg").read_text(), re.DOTALL)


def test_the_worst_case_says_what_the_table_says(tmp_path: Path) -> None:
    path = tmp_path / "worst_case.png"
    figure(CELLS, "a title", path, 0.1)
    said = texts(path)
    assert [place for place in pictures(path) if place.is_file()] == pictures(path)
    for words in (
        "adaptive robust clipping (ARC)",
        "static clipping, C = 0.2",
        "no clipping",
        "geometric median (GM)",
        "sign flipping",
        "Fall of Empires",
        "A Little Is Enough: no result",
        "chance",
        "81.0 ± 1.4 %",
        "≤ 60.0 % (failed: Fall of Empires; missing: A Little Is Enough)",
        "unknown (failed: sign flipping, Fall of Empires)",
        "maximal test accuracy in % (bar: worst case; hatched: a bound)",
    ):
        assert words in said, (words, said)


def test_a_lower_bound_has_its_sign(tmp_path: Path) -> None:
    bounded = make_cell("clip=arc", {"sf": {1: ">= 0.7"}, "foe": {1: ">= 0.75"}})
    known = make_cell("clip=arc", {"sf": {1: 0.7}, "foe": {1: 0.75}})
    for name, cell in (("bounded", bounded), ("known", known)):
        figure([cell], "a title", tmp_path / f"{name}.png")
    assert "≥ 70.0 %" in texts(tmp_path / "bounded.png")
    assert "70.0 %" in texts(tmp_path / "known.png")


def test_own_classes_are_told_from_ours_and_from_each_other(tmp_path: Path) -> None:
    rules = ("krum", "my_rules.Krum", "mine.Mean", "yours.Mean", "mine.Only")
    attacks: dict[str, dict[int, Known]] = {"mine.Flip": {1: 0.5}, "yours.Flip": {1: None}}
    figure([make_cell(f"rule={rule}", attacks) for rule in rules], "", tmp_path / "own.png")
    said = texts(tmp_path / "own.png")
    for words in ("Krum", *rules[1:4], "Only", "mine.Flip", "yours.Flip: no result"):
        assert said.count(words) == 1, (words, said)
    assert "≤ 50.0 % (missing: yours.Flip)" in said


def test_a_mark_is_filled_where_every_seed_is_known() -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure

    from lit_byz.report.worst_case_figure import _marks

    known: list[dict[int, Known]] = [{1: 0.4, 2: 0.8}, {1: 0.4, 2: None}, {1: 0.4, 2: ">= 0.8"}]
    axes = Figure().subplots()
    _marks(axes, [make_cell("", {"foe": foe}) for foe in known], "foe", "", 0)
    fills = [tuple(fill) for marks in axes.collections for fill in marks.get_facecolor()]
    assert [fill == to_rgba("white") for fill in fills] == [False, True, True]


def test_the_same_figure_makes_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        figure(CELLS, "a title", tmp_path / folder / "worst_case.png")
    for ending in FORMATS:
        one, other = (tmp_path / f / f"worst_case.{ending}" for f in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()


def test_accuracy_starts_where_it_was_measured() -> None:
    measured = {**HISTORY, "test/initial_accuracy": [(0, 0.08)]}
    steps, values = accuracy_curve(measured)
    assert steps[:2] == [0, 50]  # after the 50th step, which MLflow calls 49
    assert values[0] == 0.08
    assert accuracy_curve(HISTORY)[0][0] == 50


def test_chance_is_drawn(tmp_path: Path) -> None:
    with_it = run_figures(HISTORY, "", tmp_path / "with", 0.1)[0]
    assert ink(with_it) > ink(run_figures(HISTORY, "", tmp_path / "without")[0])
    assert chance_of("digits") == 0.1
    assert chance_of("gone.Dataset") is None


@pytest.mark.parametrize("value", [0.25, 0.5])
def test_pruned_trials_are_on_the_line(value: float) -> None:
    """What a pruned trial is at most, no line between its neighbours lies above."""
    from matplotlib.figure import Figure

    from lit_byz.report.tuned import Cost, TrialResult, Tuned
    from lit_byz.report.tuning_figures import _curve

    cell, unknown = CELLS[0], make_cell("clip=none", {"sf": {1: "failed"}})
    trials = [
        TrialResult(0, {"clip.C": 1.0}, "complete", 0.7, cell),
        TrialResult(1, {"clip.C": 3.0}, "complete", 0.8, cell),
        TrialResult(2, {"clip.C": 2.0}, "pruned", value, cell),
        TrialResult(3, {"clip.C": 2.5}, "failed", None, unknown),
    ]
    cost = Cost(0, 0, 0, 0, 0, 0, 0, 0.0)
    axes = Figure().subplots()
    place: Callable[[TrialResult], float] = lambda trial: trial.params["clip.C"]  # noqa: E731
    _curve(axes, Tuned("", ["clip.C"], [], trials, [], cost), place)
    drawn = [(line.get_xydata().tolist(), line.get_linestyle()) for line in axes.lines]
    assert drawn == [
        ([[1.0, 0.7], [2.0, value]], "--"),
        ([[2.0, value], [3.0, 0.8]], "--"),
    ]
