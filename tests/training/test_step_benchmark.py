"""The benchmark of whole steps on sizes small enough to take no time; its numbers mean nothing."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lit_byz.benchmark import _simulations, step
from lit_byz.benchmark._byzfl import load
from pipelines import benchmark


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "QUICK_SIZES", [(3, 1)])
    monkeypatch.setattr(_simulations, "BATCH_SIZE", 4)
    monkeypatch.setattr(_simulations, "POINTS", 12)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "attacks", [["sf"], pytest.param(["sf", "lf", "mimic", "foe"], marks=pytest.mark.slow)]
)
def test_quick_run(attacks: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["step", "--quick", "--out", str(tmp_path), "--only", *attacks]) == 0
    rows = list(csv.DictReader((tmp_path / "step.csv").open()))
    assert [row["attack"] for row in rows] == attacks
    for row in rows:
        assert float(row["over_floor"]) == pytest.approx(float(row["ours"]) / float(row["floor"]))
        assert float(row["ahead"]) == pytest.approx(float(row["byzfl"]) / float(row["ours"]))
        assert float(row["uncompiled"]) > 0
        assert row["gradient_method"] in ("loop", "joined", "vmap")
    content = json.loads((tmp_path / "step.json").read_text())
    assert content["byzfl"] == "0.0.11"
    assert content["tracking"] is None
    assert "sf at n=4: at most 1.5× the floor" in content["goals"]
    printed = capsys.readouterr().out
    assert "cnn_mnist, h = 3, f = 1" in printed
    assert "without" in printed
    assert "reached" in printed or "missed" in printed


def test_both_libraries_do_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same model, same number of points per step, and a model that changes."""
    monkeypatch.setattr(_simulations, "BATCH_SIZE", 4)
    monkeypatch.setattr(_simulations, "POINTS", 12)
    batches = _simulations.synthetic_batches(3)
    assert batches.round(0)[0].shape == (3, 4, 1, 28, 28)
    byzfl = load()
    theirs = byzfl.fed_framework.models.cnn_mnist()
    module = _simulations.our_module(batches, "sf", 1, steps=2)
    assert sum(p.numel() for p in theirs.parameters()) == module.flat.size
    before = module.flat.gather()
    calls: list[str] = []
    timed = _simulations.take_turns_training(module, {"other": lambda: calls.append("x")}, 1.0)
    assert len(timed["ours"]) == len(timed["other"]) == 1
    assert len(calls) == 2
    assert not torch.equal(before, module.flat.gather())
    for name, floor in _simulations.floors(batches).items():
        floor()
        assert name.split(", ")[0] in ("joined", "loop")


ROW = step.Row(
    honest=10,
    f=1,
    attack="sf",
    gradient_method="joined",
    floor=0.1,
    floor_method="joined, channels_last",
    ours=0.14,
    uncompiled=0.3,
    byzfl=0.7,
    over_floor=1.4,
    over_floor_goal=1.5,
    ahead=5.0,
    ahead_goal=4.0,
)


def test_goals() -> None:
    missed = replace(ROW, attack="foe", over_floor=2.1, over_floor_goal=2.0, ahead=30.0)
    large = replace(missed, honest=30, f=9, over_floor_goal=None, ahead_goal=40.0)
    cost = step.TrackingCost(steps=100, run=10.0, metrics=0.4, share=0.04, untracked=9.5)
    assert step.goals([ROW, missed, large], cost) == {
        "sf at n=11: at most 1.5× the floor": True,
        "sf at n=11: at least 4× as fast as byzfl": True,
        "foe at n=11: at most 2× the floor": False,
        "foe at n=11: at least 4× as fast as byzfl": True,
        "foe at n=39: at least 40× as fast as byzfl": False,
        "tracking: at most 3% of a run": False,
    }
    assert step.goals([], None) == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["step", "--only", "fo"], "unknown name 'fo': did you mean 'foe'?"),
        (["step", "--repeats", "1"], "--repeats 1: must be at least 2"),
        (["step", "--threads", "0"], "--threads 0: must be at least 1"),
    ],
)
def test_bad_requests(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark.main(arguments) == 2
    assert message in capsys.readouterr().err
