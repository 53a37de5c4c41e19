"""The full grid beside a bisection: a sweep of the same runs is a study of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from lit_byz.cli.breakdown import main as breakdown
from lit_byz.cli.report import main as report
from lit_byz.cli.sweep import main as sweep
from lit_byz.report.breakdown import arms_of
from lit_byz.tracking.shown import entries
from tests.report._results import make_cell, make_study
from tests.tracking._stores import new_store

SMALL = ["dataset=digits", "model=logreg", "workers.honest=3", "clip=none", "attack=[sf]"]
SMALL += ["train.steps=2", "train.eval_every=2", "tracking.figures=false"]


@pytest.mark.slow
def test_a_sweep_of_its_runs_leaves_it_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    store = f"tracking.uri={new_store(tmp_path)}"
    how = ["--executor", "inline", "--progress", "none", "--json"]

    def answered(code: int) -> dict[str, Any]:
        assert code == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    first = answered(breakdown([*SMALL, store, "--max-f", "1", "--full", *how]))
    assert "full_grid" in first["arms"][0]
    assert answered(sweep([*SMALL, store, "workers.f=[1]", *how]))["computed"] == 0
    known, _ = entries({"uri": store.partition("=")[2], "experiment": "lit_byz"})
    (study,) = [entry.run_id for entry in known if entry.kind == "breakdown"]
    assert answered(report([study, store, "--json"]))["arms"] == first["arms"]


def test_a_grid_that_a_sweep_has_rewritten_counts_as_incomplete() -> None:
    """As stores of before may have it."""
    arms = {"clip=arc": {"breakdown": 2, "decided": True}}
    cell = make_cell("clip=arc, workers.f=2", {"sf": {1: 0.3}}, arm="clip=arc", f=2)
    search = make_study("breakdown", [cell], arms=arms, threshold=0.5, most=2)
    whole = make_study("sweep", [make_cell("clip=arc, workers.f=2", {"sf": {1: 0.3}})])
    assert arms_of(search, whole)["clip=arc"].scanned is None
