"""A tuning study as a table, as numbers and as figures."""

import csv
import io
from dataclasses import replace
from pathlib import Path

from matplotlib.image import imread
from rich.console import Console

from lit_byz.report.tuning import (
    Comparison,
    Cost,
    StudyResult,
    TrialResult,
    as_csv,
    curve_figure,
    history_figure,
    table,
    verdict,
)
from lit_byz.report.worst_case_table import Accuracy


def trial(number: int, C: float, state: str, value: float | None) -> TrialResult:
    runs = {} if value is None else {"foe": {1: Accuracy(value)}}
    return TrialResult(number, {"clip.C": C}, state, value, runs, int(state == "pruned"))


STUDY = StudyResult(
    title="4 trials on digits",
    keys=["clip.C"],
    attacks=["foe", "sf"],
    trials=[
        trial(0, 50.0, "complete", 0.5),
        trial(1, 0.02, "pruned", 0.2),
        trial(2, 4.0, "complete", 0.75),
        trial(3, 9.0, "failed", None),
    ],
    comparisons=[
        Comparison("clip=none", {"foe": {1: Accuracy(0.3)}, "sf": {1: Accuracy(0.6, True)}}),
        Comparison("clip=arc", {"foe": {1: Accuracy(0.7)}, "sf": {1: Accuracy(0.9)}}),
    ],
    cost=Cost(8, 5, 1, 1, 2, 800, 260, 90.0),
    log=frozenset({"clip.C"}),
)
EMPTY = replace(STUDY, trials=[], comparisons=[], cost=Cost(0, 0, 0, 0, 0, 0, 0, 0.0))


def printed(study: StudyResult) -> str:
    text = io.StringIO()
    Console(file=text, width=150).print(table(study))
    return text.getvalue()


def test_the_best_is_complete_and_the_worst_may_be_a_bound() -> None:
    assert STUDY.best is STUDY.trials[2]
    assert STUDY.worst is STUDY.trials[1]
    assert EMPTY.best is None
    assert EMPTY.worst is None


def test_verdict_names_best_comparisons_worst_and_cost() -> None:
    best, none, arc, worst, cost = verdict(STUDY)
    assert best == "best: clip.C = 4 (trial 2), worst case 75.0 %"
    assert none == "clip=none, not tuned: worst case 30.0 % (2 runs)"
    assert arc == "clip=arc, not tuned: worst case 70.0 % (2 runs)"
    assert worst == "worst that was tried: clip.C = 0.02 (trial 1), worst case ≤ 20.0 %"
    assert "5 attack runs computed, 1 found in the store, 1.5 minutes" in cost
    assert "pruned: 2 of 8 runs (25 %), stopped early: 1; 32 % of the steps" in cost
    assert verdict(EMPTY) == []


def test_table_marks_bounds_and_states() -> None:
    text = printed(STUDY)
    assert "≤ 20.0" in text
    assert "≥ 60.0" in text
    assert "failed" in text
    assert "clip=arc" in text
    assert "incomplete" in printed(replace(STUDY, comparisons=[Comparison("clip=arc", {})]))
    assert "trial" in printed(EMPTY)


def test_csv_has_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(STUDY))))
    worst = {row["trial"]: row for row in rows if row["attack"] == "worst case"}
    assert set(worst) == {"0", "1", "2", "clip=none", "clip=arc"}
    assert worst["1"]["bound"] == "at most"
    assert worst["2"]["max_accuracy"] == "0.75"
    assert [row["bound"] for row in rows if row["attack"] == "sf"] == ["at least", ""]


def test_figures(tmp_path: Path) -> None:
    mixed = replace(
        STUDY,
        keys=["clip.C", "rule"],
        trials=[
            replace(t, params={**t.params, "rule": rule})
            for t, rule in zip(STUDY.trials, ("cwtm", "gm", "cwtm", "gm"), strict=True)
        ],
    )
    for name, study in (("one", STUDY), ("two", mixed), ("none", EMPTY)):
        for draw in (history_figure, curve_figure):
            path = tmp_path / name / f"{draw.__name__}.png"
            draw(study, path)
            pixels = imread(path)[..., :3]
            assert (pixels < 0.95).any(-1).mean() > 0.005
    one, two = (imread(tmp_path / name / "curve_figure.png") for name in ("one", "two"))
    assert two.shape[1] > one.shape[1]  # a panel for each key
