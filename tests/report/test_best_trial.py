"""The best trial is called the best where no other can be better for all that is known."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lit_byz.report.note import note_of
from lit_byz.report.render import render
from lit_byz.report.tuned import tuned
from lit_byz.report.tuning import verdict
from lit_byz.report.tuning_figures import curve_figure
from tests.report._results import Known, make_study, no_other, text_of
from tests.report.test_tuning import FACTS, ended, trial

BOUND = "trial 2 is at most {:.1f} %"
NOTHING = "nothing is known of trial 2"


# 50 % and 75 % beside it.
@pytest.mark.parametrize(
    ("foe", "sf", "facts", "known"),
    [
        (0.801, "failed", ended("failed", None), BOUND.format(80.1)),
        (0.75, "failed", ended("failed", None), None),  # no better than the best
        (0.6, "failed", ended("failed", None), None),
        ("failed", "failed", ended("failed", None), NOTHING),
        (0.9, None, {}, BOUND.format(90)),  # still running
        (0.6, None, {}, None),
        (None, None, {}, NOTHING),
        (0.7, None, ended("pruned", 0.7), None),
        (None, None, ended("pruned", 0.7), None),  # its runs were deleted since
        (">= 0.6", 0.9, ended("complete", 0.6), BOUND.format(90)),
        (">= 0.8", 0.7, ended("complete", 0.7), None),
    ],
)
@pytest.mark.parametrize("judged_on", ["test", "val"])
def test_a_best_one_is_named_where_no_other_can_be_better(
    foe: Known, sf: Known, facts: dict[str, Any], known: str | None, judged_on: str, tmp_path: Path
) -> None:
    trials = [trial(0, 1.0, 0.5, 0.6, **ended("complete", 0.5))]
    trials += [trial(1, 2.0, 0.75, 0.9, **ended("complete", 0.75)), trial(2, 3.0, foe, sf, **facts)]
    result = make_study("tuning", trials, **FACTS, judged_on=judged_on)
    study = tuned(result)
    called = "best" if known is None else "best that is exactly known"
    images = "" if judged_on == "test" else " on images held out"
    found = render(result, tmp_path, no_other)
    said = [f"{called}: clip.C = 2 (trial 1), worst case 75.0 %{images}"]
    said += [] if known is None else [f"could be better: {known}"]
    printed, written = text_of(*found.printed), (tmp_path / "tuning.txt").read_text()
    note = note_of(result, []).replace("\\", "")
    for text in (printed, written, note):
        assert all(line in text for line in said)
        assert ("best that is exactly known" in text) is (known is not None)
        assert ("could be better" in text) is (known is not None)
    for name in ("curve", "history"):
        drawn = (tmp_path / f"tuning_{name}.svg").read_text()
        assert f"{called}: C = 2, 75.0 %" in drawn
        assert known is None or known in drawn
        assert ("could be better" in drawn) is (known is not None)
    assert f"{called} so far" in drawn
    content = json.loads(json.dumps(found.content))
    assert content["best_known"]["trial"] == 1
    assert content["best"] == (content["best_known"] if known is None else None)
    reached = study.trials[2].cell.worst_case
    at_most = reached.at_most if reached.known else None
    assert content["could_be_better"] == (
        [] if known is None else [{"trial": 2, "at_most": at_most}]
    )


def test_few_that_could_be_better_are_named_the_likeliest_first() -> None:
    failed = [trial(n, n, 0.7 + n / 100, "failed", **ended("failed", None)) for n in range(1, 7)]
    best = trial(0, 1.0, 0.5, 0.6, **ended("complete", 0.5))
    study = tuned(make_study("tuning", [best, *failed], **FACTS))
    first, second = verdict(study)[:2]
    assert first.startswith("best that is exactly known: clip.C = 1 (trial 0)")
    few = ", ".join(f"trial {n} is at most {70 + n}.0 %" for n in (6, 5, 4))
    assert second == f"could be better: {few}, and 3 more"


def test_trials_of_which_runs_failed_are_drawn_as_bounds(tmp_path: Path) -> None:
    """Where every trial has one, the figure would be empty otherwise."""
    failed = trial(0, 3.0, 0.6, "failed", **ended("failed", None))
    unknown = trial(1, 7.0, "failed", "failed", **ended("failed", None))
    study = tuned(make_study("tuning", [failed, unknown], **FACTS))
    assert [found.at_most for found in study.trials] == [0.6, None]
    curve_figure(study, tmp_path / "curve.svg")
    assert "runs failed: at most this" in (tmp_path / "curve.svg").read_text()
    curve_figure(replace(study, trials=study.trials[1:]), tmp_path / "empty.svg")
    assert "runs failed" not in (tmp_path / "empty.svg").read_text()
