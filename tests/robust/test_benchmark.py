"""The benchmark command on sizes small enough to take no time; its numbers mean nothing here."""

import csv
import json
from pathlib import Path

import pytest
import torch

from lit_byz.benchmark import _byzfl, _runtime, _timing, robust
from lit_byz.cli.benchmark import BENCHMARKS
from pipelines import benchmark


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robust, "SIZES", [(7, 2, 300)])
    monkeypatch.setattr(robust, "QUICK_SIZES", [(5, 1, 200)])
    monkeypatch.setattr(_runtime, "QUICK_MODEL_SIZES", [100, 200])
    monkeypatch.setattr(_runtime, "QUICK_WORKER_COUNTS", [8, 9])


@pytest.mark.usefixtures("small")
def test_every_rule_is_compared_with_byzfl(tmp_path: Path) -> None:
    arguments = ["robust", "--out", str(tmp_path), "--only", *_byzfl.PAIRS, "--repeats", "2"]
    assert benchmark.main(arguments) == 0
    rows = list(csv.DictReader((tmp_path / "robust.csv").open()))
    assert len(rows) == sum(4 if pair.mixes else 2 for pair in _byzfl.PAIRS.values())
    assert {row["rule"] for row in rows} == set(_byzfl.PAIRS)
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(float(row["byzfl"]) / float(row["ours"]))
        assert float(row["uncompiled"]) > 0
        if row["rule"] not in ("caf", "meamed", "smea"):
            assert float(row["difference"]) < 1e-4
    content = json.loads((tmp_path / "robust.json").read_text())
    assert content["byzfl"] == "0.0.11"
    assert content["machine"]["threads"] == torch.get_num_threads()
    assert len(content["arc_added"]) == 1
    assert "ahead in every row" in content["goals"]


@pytest.mark.usefixtures("small")
def test_quick_run_with_figure(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert benchmark.main(["robust", "--quick", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "runtime.png").stat().st_size > 10_000
    content = json.loads((tmp_path / "robust.json").read_text())
    assert [(point["n"], point["d"]) for point in content["runtime"]] == [
        *((30, 100), (30, 200)),
        *((8, 200), (9, 200)),
    ]
    output = capsys.readouterr().out
    assert "cwtm∘nnm∘arc" in output
    assert "without" in output
    assert "ARC adds" in output


def test_searches(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    small = ["--quick", "--repeats", "2", "--parameters", "300", "--only", "cwtm"]
    assert benchmark.main(["attacks", "--out", str(tmp_path), *small]) == 0
    rows = list(csv.DictReader((tmp_path / "attacks.csv").open()))
    assert [row["attack"] for row in rows] == ["foe", "alie"]
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(float(row["byzfl"]) / float(row["ours"]))
        assert float(row["uncompiled"]) > 0
    assert "without" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["robst"], "unknown benchmark 'robst': did you mean 'robust'?"),
        (["robust", "--only", "cwtn"], "unknown name 'cwtn': did you mean 'cwtm'?"),
        (["robust", "--repeats", "1"], "--repeats 1: must be at least 2"),
        (["robust", "--threads", "0"], "--threads 0: must be at least 1"),
        (["robust", "--fast"], "--fast"),
    ],
)
def test_bad_requests(arguments: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    assert benchmark.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_help_names_every_benchmark(capsys: pytest.CaptureFixture) -> None:
    assert benchmark.main([]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in BENCHMARKS)


def test_turns_are_taken_on_fresh_copies() -> None:
    calls: list[str] = []

    def spoil(x: torch.Tensor) -> None:
        assert torch.equal(x, torch.ones(3))
        calls.append("a")
        x.zero_()

    timings = _timing.take_turns(
        {"a": spoil, "b": lambda x: calls.append("b")}, torch.ones(3), repeats=3, budget=60.0
    )
    assert calls == ["a", "b"] * 4  # one round of them is the warm-up
    assert len(timings.seconds["a"]) == len(timings.seconds["b"]) == 3
    exhausted = _timing.take_turns({"b": lambda x: None}, torch.ones(3), repeats=50, budget=0.0)
    assert len(exhausted.seconds["b"]) == 2


def test_median_of_pairs() -> None:
    timings = _timing.Timings({"with": [3.0, 9.0, 5.0], "without": [1.0, 8.0, 4.5]})
    assert timings.median("with") == 5.0
    assert timings.median_difference("with", "without") == 1.0
