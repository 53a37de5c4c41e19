"""A tuning study as a table, as numbers and as figures."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from lit_byz.report import worst_case_table
from lit_byz.report.drawing import FORMATS
from lit_byz.report.render import render
from lit_byz.report.tuned import Comparison, Cost, Tuned, tuned
from lit_byz.report.tuning import csv_of, table, verdict
from lit_byz.report.tuning_figures import curve_figure, history_figure
from lit_byz.tracking.records import CellResult
from tests.report._results import (
    Known,
    ends_in,
    make_cell,
    make_study,
    no_other,
    text_of,
    with_ends,
)

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
    assert study.highest == STUDY.highest
    assert "running" in printed(study)


def test_tuned_steps_count_as_each_trial_has_them() -> None:
    """The reference has 40 in each run; nobody saves more steps than there would have been."""
    long = trial(0, 1.0, 0.2, steps=1000, **ended("pruned", 0.2, pruned=1, steps_saved=1000))
    short = trial(1, 2.0, 0.5, 0.6, steps=250, **ended("complete", 0.5, computed=2))
    study = tuned(make_study("tuning", [long, short], **FACTS))
    assert (study.cost.steps_saved, study.cost.steps) == (1000, 2500)
    assert "; 40 % of the steps were not needed" in verdict(study)[-1]


def test_the_best_is_complete_and_the_lowest_may_be_a_bound() -> None:
    assert STUDY.highest is STUDY.trials[2]
    assert STUDY.best is None  # nothing is known of one that failed
    assert STUDY.lowest is STUDY.trials[1]
    assert EMPTY.highest is None
    assert EMPTY.best is None
    assert EMPTY.could_be_better == []
    assert EMPTY.lowest is None
    assert EMPTY.worst is None


# 50 % and 20 % beside it.
@pytest.mark.parametrize(
    ("foe", "sf", "state", "established"),
    [
        (0.6, 0.7, "complete", True),
        (0.4, None, "pruned", False),  # it could be anything up to 40 %
        (0.1, None, "pruned", True),
        (0.1, "failed", "failed", True),  # whatever the other run would have been
        (0.6, "failed", "failed", False),
        ("failed", None, "failed", False),
        (0.6, None, "running", False),
        (">= 0.15", 0.6, "complete", False),
        (">= 0.3", 0.6, "complete", True),
    ],
)
def test_a_worst_one_is_named_where_no_other_can_be_lower(
    foe: Known, sf: Known, state: str, established: bool, tmp_path: Path
) -> None:
    """What a pruned trial is at most says nothing of how low it is."""
    known = [trial(0, 1.0, 0.5, 0.6, **ended("complete", 0.5))]
    known += [trial(1, 2.0, 0.2, 0.9, **ended("complete", 0.2))]
    facts = {} if state == "running" else ended(state, None)
    result = make_study("tuning", [*known, trial(2, 3.0, foe, sf, **facts)], **FACTS)
    study = tuned(result)
    number = 2 if foe == 0.1 else 1
    assert study.lowest is study.trials[number]
    assert study.worst is (study.lowest if established else None)
    start = "worst that was tried" if established else "lowest that is known"
    (line,) = [line for line in verdict(study) if line.startswith(start)]
    assert f"(trial {number}), worst case {'≤ 10.0' if number == 2 else '20.0'} %" in line
    content = json.loads(json.dumps(render(result, tmp_path, no_other).content))
    assert content["lowest_known"]["trial"] == number
    assert content["worst"] == (content["lowest_known"] if established else None)


def test_verdict_names_best_comparisons_lowest_and_cost() -> None:
    best, better, none, arc, lowest, cost = verdict(STUDY)
    assert best == "best that is exactly known: clip.C = 4 (trial 2), worst case 75.0 %"
    assert better == "could be better: nothing is known of trial 3"
    assert none == "clip=none, not tuned: worst case 30.0 % (2 runs)"
    assert arc == "clip=arc, not tuned: worst case 70.0 % (2 runs)"
    assert lowest == "lowest that is known: clip.C = 0.02 (trial 1), worst case ≤ 20.0 %"
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


def test_signs_are_explained_by_what_leads_to_them() -> None:
    stopped = "≥: at least (stopped when it could not matter any more)"
    lacking = "≤: at most (runs pruned, failed or missing)"
    assert table(STUDY).caption == f"maximal test accuracy in %; {stopped}; {lacking}"
    whole = replace(STUDY, trials=STUDY.trials[:1])
    assert table(whole).caption == f"maximal test accuracy in %; {stopped}"
    assert table(EMPTY).caption == "maximal test accuracy in %"


def test_what_failed_or_was_pruned_is_shown_as_a_sweep_shows_it() -> None:
    """A value of one seed is not taken for the mean of two, nor a failure for nothing."""
    known: dict[str, dict[int, Known]] = {"foe": {1: 0.2, 2: None}, "sf": {1: None, 2: None}}
    fixed = {"trial": 0, "params": {"clip.C": 1.0}, "decided": True}
    pruned = make_cell("trial 0", known, "trial", **fixed, **ended("pruned", 0.6))
    failed = trial(1, 2.0, 0.7, "failed", **ended("failed", None))
    nothing = trial(2, 3.0, "failed", **ended("failed", None))
    beside = make_cell("clip=arc", {"foe": {1: 0.8}, "sf": {1: "failed"}}, comparison="clip=arc")
    study = tuned(make_study("tuning", [pruned, failed, nothing, beside], **FACTS))
    rows = [
        [part.strip() for part in line.split("│")[1:-1]]
        for line in printed(study).splitlines()
        if line.startswith("│")
    ]
    assert rows == [
        ["0", "1", "20.0 (1 missing)", "", "≤ 60.0"],
        ["1", "2", "70.0", "failed", "≤ 70.0 (1 failed)"],
        ["2", "3", "failed", "", "unknown (1 failed, 1 missing)"],
        ["", "clip=arc", "80.0", "failed", "≤ 80.0 (1 failed)"],
    ]
    written = [
        [row[key] for key in ("trial", "attack", "seed", "max_accuracy", "bound", "status")]
        for row in csv.DictReader(io.StringIO(csv_of(study)))
    ]
    assert written == [
        ["0", "foe", "1", "0.2", "", "finished"],
        ["0", "foe", "2", "", "", "missing"],
        ["0", "sf", "1", "", "", "missing"],
        ["0", "sf", "2", "", "", "missing"],
        ["0", "worst case", "mean", "0.6", "at most", "at most"],
        ["1", "foe", "1", "0.7", "", "finished"],
        ["1", "sf", "1", "", "", "failed"],
        ["1", "worst case", "mean", "0.7", "at most", "at most"],
        ["2", "foe", "1", "", "", "failed"],
        ["2", "sf", "1", "", "", "missing"],
        ["clip=arc", "foe", "1", "0.8", "", "finished"],
        ["clip=arc", "sf", "1", "", "", "failed"],
        ["clip=arc", "worst case", "mean", "0.8", "at most", "at most"],
    ]


def test_csv_has_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(STUDY))))
    worst = {row["trial"]: row for row in rows if row["attack"] == "worst case"}
    assert set(worst) == {"0", "1", "2", "clip=none", "clip=arc"}
    assert worst["1"]["bound"] == "at most"
    assert worst["2"]["max_accuracy"] == "0.75"
    bounds = {row["trial"]: row["bound"] for row in rows if row["attack"] == "sf"}
    assert {trial for trial, bound in bounds.items() if bound} == {"0", "clip=none"}
    assert set(bounds.values()) == {"", "at least"}
    assert {row["judged_on"] for row in rows} == {"test"}
    rows = list(csv.DictReader(io.StringIO(csv_of(replace(STUDY, judged_on="val")))))
    assert {row["judged_on"] for row in rows} == {"validation"}


def test_csv_has_the_ends_of_runs_and_of_worst_cases() -> None:
    """By the names, and with the numbers, of a sweep's."""
    cells = [with_ends(cell) for cell in RESULT.cells]
    study = tuned(make_study("tuning", cells, **FACTS))
    rows = list(csv.DictReader(io.StringIO(csv_of(study))))
    for cell in cells:
        name = str(cell.facts.get("trial", cell.name))
        written = ends_in(row for row in rows if row["trial"] == name)
        swept = ends_in(csv.DictReader(io.StringIO(worst_case_table.csv_of([cell]))))
        assert written == {place: swept[place] for place in written}
        assert len(written) == 2 + bool(cell.worst_case.known)
    assert any(row["last_accuracy"] for row in rows)


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


@pytest.mark.parametrize(
    ("foe", "sf", "shown"),
    [
        (0.7, None, "≤ 70.0 % (1 run, 1 missing)"),
        (0.7, "failed", "≤ 70.0 % (1 run, 1 failed)"),
        (0.7, ">= 0.5", "≥ 50.0 % (2 runs)"),
        ("failed", "failed", "unknown (0 runs, 2 failed)"),
    ],
)
def test_a_comparison_that_is_not_exactly_known_is_told_as_a_bound(
    foe: Known, sf: Known, shown: str, tmp_path: Path
) -> None:
    cell = make_cell("clip=arc", {"foe": {1: foe}, "sf": {1: sf}}, comparison="clip=arc")
    study = replace(STUDY, comparisons=[Comparison("clip=arc", cell)])
    assert study.comparisons[0].value is None
    (line,) = [line for line in verdict(study) if "clip=arc" in line]
    assert line == f"clip=arc, not tuned: worst case {shown}"
    held_out = verdict(replace(study, judged_on="val"))
    assert f"{line} on images held out, unknown on the test images" in held_out
    curve_figure(study, tmp_path / "curve.svg")
    percent = shown.partition(" (")[0]
    label = f"adaptive robust clipping (ARC): {percent}"
    assert (label in (tmp_path / "curve.svg").read_text()) is (percent != "unknown")


def test_report(tmp_path: Path) -> None:
    found = render(RESULT, tmp_path, no_other)
    text = text_of(*found.printed)
    assert "best that is exactly known: clip.C = 4 (trial 2), worst case 75.0 %" in text
    assert "1 trial failed: --retry-failed tries them again" in text
    assert found.tags == {"lit_byz.best.clip.C": "4.0"}
    assert found.metrics["worst_case/best_trial"] == 0.75
    assert found.metrics["worst_case/clip=arc"] == pytest.approx(0.7)
    content = json.loads(json.dumps(found.content))
    assert content["best_known"]["trial"] == 2
    assert content["trials"][1]["upper_bound"]
    bounded = content["trials"][0]["runs"]["sf, seed 1"]
    assert (bounded["max_accuracy"], bounded["status"]) == (0.6, "bounded")
    assert content["trials"][0]["mlflow_run_id"] == "run of trial 0"
    assert {path.name for path in found.files} == {
        *(f"tuning_{what}.{form}" for what in ("curve", "history") for form in FORMATS),
        *("tuning.csv", "tuning.txt"),
    }
    assert "best that is exactly known: clip.C = 4" in (tmp_path / "tuning.txt").read_text()
