"""The benchmark of whole steps on sizes small enough to take no time; its numbers mean nothing."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lit_byz.benchmark import _simulations, _step_rows, _step_table
from lit_byz.benchmark._byzfl import load
from pipelines import benchmark

SMALL = _simulations.Problem((1, 28, 28), 4)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_step_rows, "QUICK_SIZES", [(3, 1)])
    monkeypatch.setitem(_simulations.PROBLEMS, "cnn_mnist", SMALL)
    monkeypatch.setattr(_simulations, "POINTS", 12)


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "names", [["sf"], pytest.param(["lf", "mimic", "foe", "gm_alie"], marks=pytest.mark.slow)]
)
def test_quick_run(names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["step", "--quick", "--out", str(tmp_path)]
    assert benchmark.main([*asked, "--only", *names]) == 0
    rows = list(csv.DictReader((tmp_path / "step.csv").open()))
    assert [row["name"] for row in rows] == names
    for row in rows:
        for ratio in ("over_floor", "ahead"):
            low, middle, high = (float(row[ratio + end]) for end in ("_low", "", "_high"))
            assert 0 < low <= middle <= high
        assert float(row["uncompiled"]) > 0
        assert float(row["by_hand"]) > 0
        assert row["gradient_method"] in ("loop", "joined", "vmap")
    content = json.loads((tmp_path / "step.json").read_text())
    assert content["byzfl"] == "0.0.11"
    assert content["tracking"] is None
    assert content["machine"]["instructions"] in ("avx2", "avx512", "plain", "torch")
    first = "lf at n=4: at most 1.8× the floor" if "lf" in names else "sf at n=4: at most 1.25×"
    assert any(goal.startswith(first) for goal in content["goals"])
    said = capsys.readouterr()
    assert "cnn_mnist, h = 3, f = 1" in said.out
    assert "without" in said.out
    assert any(verdict in said.out for verdict in ("reached", "missed", "undecided"))
    assert f"1/{len(names)}  {names[0]}, n=4 …\n1/{len(names)}  {names[0]}, n=4: ours" in said.err
    assert benchmark.main([*asked, "--show", "--markdown"]) == 0
    assert f"| {rows[0]['attack']} | " in capsys.readouterr().out


def test_both_libraries_do_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same model, same number of points per step, and a model that changes."""
    monkeypatch.setitem(_simulations.PROBLEMS, "cnn_mnist", SMALL)
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
    assert len(timed.seconds["ours"]) == len(timed.seconds["other"]) == 1
    assert len(calls) == 2
    assert not torch.equal(before, module.flat.gather())
    for name, floor in _simulations.floors(batches).items():
        floor()
        assert name.split(", ")[0] in ("joined", "loop")


ROW = _step_rows.Row(
    name="sf",
    model="cnn_mnist",
    honest=10,
    f=1,
    batch_size=25,
    attack="sf",
    rule="cwtm",
    gradient_method="joined",
    turns=15,
    floor=0.1,
    floor_method="joined, channels_last",
    ours=0.12,
    uncompiled=0.3,
    by_hand=0.4,
    byzfl=0.7,
    over_floor=1.2,
    over_floor_low=1.1,
    over_floor_high=1.3,
    over_floor_goal=1.25,
    ahead_of_hand=3.3,
    ahead=5.8,
    ahead_low=5.5,
    ahead_high=6.0,
    ahead_goal=5.0,
)


def test_goals() -> None:
    missed = replace(
        ROW, attack="foe", rule="gm", over_floor_low=1.5, over_floor_high=1.7, over_floor_goal=1.4
    )
    large = replace(ROW, model="resnet18", byzfl=None, ahead=None, over_floor_goal=1.3)
    cost = _step_rows.TrackingCost(steps=100, run=10.0, metrics=0.4, share=0.04, untracked=9.5)
    assert _step_rows.goals([ROW, missed, large], cost) == {
        "sf at n=11: at most 1.25× the floor": "undecided: between 1.1 and 1.3",
        "sf at n=11: at least 5× as fast as byzfl": "reached",
        "foe on gm at n=11: at most 1.4× the floor": "missed",
        "foe on gm at n=11: at least 5× as fast as byzfl": "reached",
        "resnet18, sf at n=11: at most 1.3× the floor": "reached",
        "tracking: at most 3% of a run": False,
    }
    assert _step_rows.goals([], None) == {}
    shown = _step_table.markdown([ROW, missed, large], cost, "avx2")
    assert "| 1.20× [1.10, 1.30] (≤ 1.25) | 3.3× | 5.80× [5.50, 6.00] (≥ 5) |" in shown
    assert "- foe on gm at n=11: at most 1.4× the floor: missed" in shown


def test_every_case_has_its_goals() -> None:
    found = {(case.name, case.n): case for case in _step_rows.cases(quick=False)}
    over = {key: case.over_floor_goal for key, case in found.items()}
    assert [over["sf", n] for n in (11, 39)] == [1.25, 1.25]
    assert [over["lf", n] for n in (11, 39)] == [1.8, 1.8]
    assert [over["alie", n] for n in (11, 39)] == [1.5, 1.8]
    assert over["multi_krum_foe", 11] == 1.4
    assert over["cnn_cifar", 17] == over["resnet18", 9] == 1.3
    assert found["mimic", 39].ahead_goal == 5
    assert [found["foe", n].ahead_goal for n in (11, 39)] == [50, 80]


def test_new_rows_replace_old_ones_of_the_same_case() -> None:
    again, other = replace(ROW, ours=0.2), replace(ROW, honest=30)
    assert _step_rows.merged([ROW, other], [again]) == [again, other]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["step", "--only", "fo"], "unknown name 'fo': did you mean 'foe'?"),
        (["step", "--repeats", "1"], "--repeats 1: must be at least 2"),
        (["step", "--threads", "0"], "--threads 0: must be at least 1"),
        (["step", "--only", "sf", "--n", "12"], "--only, --n: no case is left"),
        (["step", "--show", "--out", "nowhere"], "step.json: there is no such file"),
    ],
)
def test_bad_requests(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark.main(arguments) == 2
    assert message in capsys.readouterr().err
