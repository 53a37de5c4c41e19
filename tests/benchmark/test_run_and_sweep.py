"""The benchmarks of complete runs and of sweeps, on little; their numbers mean nothing."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.callbacks import Callback

from lit_byz.benchmark import _harness, run, sweep
from lit_byz.benchmark._side_by_side import floor_side_by_side
from pipelines import benchmark


@pytest.mark.slow
def test_complete_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "QUICK_STEPS", 4)
    monkeypatch.setattr(run, "FLOOR_REPEATS", 1)
    asked = ["run", "--quick", "--only", "sf", "--dataset", "digits", "--out", str(tmp_path)]
    begin = time.perf_counter()
    assert benchmark.main(asked) == 0
    taken = time.perf_counter() - begin
    content = json.loads((tmp_path / "run.json").read_text())
    (row,) = content["rows"]
    assert (row["attack"], row["steps"], row["runs"]) == ("sf", 4, 2)
    assert all(row[part] > 0 for part in ("in_steps", "evaluation", "tracking", "floor"))
    assert row["checkpoints"] >= 0
    assert row["other"] >= 0  # else something is counted twice
    assert row["everything"] < taken
    assert 1 < row["over_steps_low"] <= row["over_steps"] <= row["over_steps_high"]
    assert row["over_floor"] > 0
    assert list(content["goals"]) == ["sf: a complete run takes at most 1.15× its steps"]
    assert "complete runs on digits" in capsys.readouterr().out


class Stop(Callback):
    """Sends what ends a run early."""

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if pl_module.global_step == 2:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_that_ends_a_run_ends_the_benchmark() -> None:
    """It used to take the time of a part for that of the whole, and to begin the next run."""
    settings = ["dataset=digits", "model=logreg", "attack=sf", "tracking.enabled=false"]
    settings += ["train.steps=6", "train.eval_every=3", "workers.honest=5"]
    _harness.train_to_the_end(settings)
    with pytest.raises(KeyboardInterrupt):
        _harness.train_to_the_end(settings, [Stop()])


RUN = run.Row("sf", 400, 3, 11.0, 9.0, 1.0, 0.2, 0.3, 0.5, 8.0, 1.2, 1.16, 1.3, 1.375)


def test_goal_of_a_run() -> None:
    (verdict,) = run.goals([RUN]).values()
    assert verdict == "missed"
    (verdict,) = run.goals([replace(RUN, over_steps_low=1.1)]).values()
    assert verdict == "undecided: between 1.1 and 1.3"


ROW = sweep.Row("mnist", 12, 200, 2, 100.0, 10.0, 160.0, 3.0, 0.05, 120.0, 0.6, 0.7, (0.6, 0.75))


def test_shares_of_a_sweep() -> None:
    assert ROW.share_busy == pytest.approx(0.8)
    assert ROW.inside == pytest.approx(0.75)
    assert ROW.share_busy * ROW.inside == pytest.approx(ROW.efficiency)
    assert sweep.goals([ROW, replace(ROW, name="quickstart", goal=None)]) == {
        "sweep mnist: efficiency at least 0.7": "undecided: between 0.6 and 0.75"
    }


@pytest.mark.slow
def test_a_sweep_with_its_start_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = sweep.Sweep(("experiment=quickstart", "clip=arc", "attack=[sf,foe]"), "mlp", 10, 5, "")
    monkeypatch.setitem(sweep.SWEEPS, "quickstart", replace(few, dataset="digits"))
    monkeypatch.setattr(sweep, "QUICK_STEPS", 5)
    assert benchmark.main(["sweep", "--quick", "--only", "quickstart", "--out", str(tmp_path)]) == 0
    (row,) = json.loads((tmp_path / "sweep.json").read_text())["rows"]
    assert (row["runs"], row["steps"]) == (2, 5)
    assert row["floor"] > 0
    assert row["efficiency"] > 0
    # Runs lie between the start and the end, no more of them at once than there are cores.
    assert min(row["start_up"], row["winding_up"], row["busy"]) > 0
    assert row["start_up"] + row["winding_up"] < row["wall"]
    assert row["busy"] < row["wall"] * row["cores"]
    assert row["goal"] is None


@pytest.mark.slow
def test_the_floor_of_several_processes_at_once() -> None:
    assert 0 < floor_side_by_side("mlp", 2, 2, 0.2) < 1


def test_data_that_cannot_be_had_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["run", "--dataset", "nowhere"]) == 2
    assert "unknown data set 'nowhere'" in capsys.readouterr().err
