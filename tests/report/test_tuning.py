"""A tuning study as a table, as numbers and as figures."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from lit_byz.report.drawing import FORMATS
from lit_byz.report.render import render
from lit_byz.report.tuned import Comparison, Cost, Tuned, tuned
from lit_byz.report.tuning import csv_of, table, verdict
from lit_byz.report.tuning_figures import curve_figure, history_figure
from lit_byz.tracking.records import CellResult
from tests.report._results import Known, make_cell, make_study, no_other, text_of

FACTS = {
    **{"keys": ["clip.C"], "log": ["clip.C"], "attacks": ["foe", "sf"], "study": "mine"},
    **{"runs_per_trial": 2, "steps_per_trial": 80},
}


def trial(number: int, C: float, foe: Known, sf: Known = None, **facts: Any) -> CellResult:
    fixed = {"trial": number, "params": {"clip.C": C}}
    return make_cell(f"trial {number}", {"foe": {1: foe}, "sf": {1: sf}}, "trial", **fixed, **facts)


def ended(state: str, value: float | None, **cost: float) -> dict[str, Any]:
    nothing = {"computed": 0, "found": 0, "bounded": 0, "pruned": 0, "steps_saved": 0, "seconds": 0}
    return {"state": state, "value": value, "cost": {**nothing, **cost}}


TRIALS = [
    trial(2, 4.0, 0.75, 0.8, **ended("complete", 0.75, computed=1, found=1, seconds=30.0)),
    trial(0, 50.0, 0.5, ">= 0.6", **ended("complete", 0.5, computed=2, bounded=1, steps_saved=24)),
    trial(1, 0.02, 0.2, **ended("pruned", 0.2, computed=1, pruned=1, steps_saved=40)),
    trial(3, 9.0, "failed", **ended("failed", None, computed=1, pruned=1, steps_saved=40)),
]
COMPARED = [
    make_cell("clip=none", {"foe": {1: 0.3}, "sf": {1: ">= 0.6"}}, comparison="clip=none"),
    make_cell("clip=arc", {"foe": {1: 0.7}, "sf": {1: 0.9}}, comparison="clip=arc"),
]
RESULT = make_study("tuning", [*TRIALS, *COMPARED], **FACTS)
STUDY = tuned(RESULT)
EMPTY = replace(STUDY, trials=[], comparisons=[], cost=Cost(0, 0, 0, 0, 0, 0, 0, 0.0))


def printed(study: Tuned) -> str:
    return text_of(table(study))


def test_a_study_as_the_ledger_has_it() -> None:
    assert [found.number for found in STUDY.trials] == [0, 1, 2, 3]
    assert [found.name for found in STUDY.comparisons] == ["clip=none", "clip=arc"]
    assert STUDY.title == "4 trials on digits, extreme, f=1"
    assert STUDY.log == {"clip.C"}
    assert STUDY.cost == Cost(8, 5, 1, 1, 2, 320, 104, 30.0)


def test_a_trial_that_has_not_ended_costs_nothing_yet() -> None:
    running = trial(4, 7.0, 0.9)
    study = tuned(make_study("tuning", [*TRIALS, running], **FACTS))
    assert study.trials[-1].state == "running"
    assert study.cost == STUDY.cost
    assert study.best == STUDY.best
    assert "running" in printed(study)


def test_tuned_steps_count_as_each_trial_has_them() -> None:
    """The reference has 40 in each run; nobody saves more steps than there would have been."""
    long = trial(0, 1.0, 0.2, steps=1000, **ended("pruned", 0.2, pruned=1, steps_saved=1000))
    short = trial(1, 2.0, 0.5, 0.6, steps=250, **ended("complete", 0.5, computed=2))
    study = tuned(make_study("tuning", [long, short], **FACTS))
    assert (study.cost.steps_saved, study.cost.steps) == (1000, 2500)
    assert "; 40 % of the steps were not needed" in verdict(study)[-1]


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
    assert "5 attack runs computed, 1 found in the store, 0.5 minutes" in cost
    assert "pruned: 2 of 8 runs (25 %), stopped early: 1; 32 % of the steps" in cost
    assert verdict(EMPTY) == []


def test_table_marks_bounds_and_states() -> None:
    text = printed(STUDY)
    assert "≤ 20.0" in text
    assert "≥ 60.0" in text
    assert "failed" in text
    assert "clip=arc" in text
    open_ = make_cell("clip=arc", {"foe": {1: 0.7}, "sf": {1: None}}, comparison="clip=arc")
    assert "≤ 70.0 (1 missing)" in printed(replace(STUDY, comparisons=[Comparison("arc", open_)]))
    assert "trial" in printed(EMPTY)


def test_csv_has_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(STUDY))))
    worst = {row["trial"]: row for row in rows if row["attack"] == "worst case"}
    assert set(worst) == {"0", "1", "2", "clip=none", "clip=arc"}
    assert worst["1"]["bound"] == "at most"
    assert worst["2"]["max_accuracy"] == "0.75"
    bounds = {row["trial"]: row["bound"] for row in rows if row["attack"] == "sf"}
    assert bounds == {"0": "at least", "2": "", "clip=none": "at least", "clip=arc": ""}
    assert {row["judged_on"] for row in rows} == {"test"}
    rows = list(csv.DictReader(io.StringIO(csv_of(replace(STUDY, judged_on="val")))))
    assert {row["judged_on"] for row in rows} == {"validation"}


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


def test_only_a_worst_case_that_is_exactly_known_is_compared_with() -> None:
    for sf in (None, "failed", ">= 0.5"):
        cell = make_cell("clip=arc", {"foe": {1: 0.7}, "sf": {1: sf}}, comparison="clip=arc")
        study = replace(STUDY, comparisons=[Comparison("clip=arc", cell)])
        assert study.comparisons[0].value is None
        assert not [line for line in verdict(study) if "clip=arc" in line]


def test_report(tmp_path: Path) -> None:
    found = render(RESULT, tmp_path, no_other)
    text = text_of(*found.printed)
    assert "best: clip.C = 4 (trial 2), worst case 75.0 %" in text
    assert "1 trials failed: --retry-failed tries them again" in text
    assert found.tags == {"lit_byz.best.clip.C": "4.0"}
    assert found.metrics["worst_case/best_trial"] == 0.75
    assert found.metrics["worst_case/clip=arc"] == pytest.approx(0.7)
    content = json.loads(json.dumps(found.content))
    assert content["best"]["trial"] == 2
    assert content["trials"][1]["upper_bound"]
    bounded = content["trials"][0]["runs"]["sf, seed 1"]
    assert (bounded["max_accuracy"], bounded["status"]) == (0.6, "bounded")
    assert content["trials"][0]["mlflow_run_id"] == "run of trial 0"
    assert {path.name for path in found.files} == {
        *(f"tuning_{what}.{form}" for what in ("curve", "history") for form in FORMATS),
        *("tuning.csv", "tuning.txt"),
    }
    assert "best: clip.C = 4" in (tmp_path / "tuning.txt").read_text()
