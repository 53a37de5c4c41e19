"""Bits are the same within one version of torch: a run that is not says so."""

import json
import sqlite3
from pathlib import Path

import pytest
import torch

from lit_byz import train
from lit_byz._versions import VERSIONS, other_torch, this_torch
from lit_byz.cli import sweep
from lit_byz.cli.train import summary
from lit_byz.config.compose import compose
from tests.execution._runs import tags_of
from tests.tracking._stores import DATABASE, new_store

QUICK = ["dataset=digits", "model=logreg", "train.steps=4", "train.eval_every=2", "resume=auto"]
QUICK += ["tracking.figures=false"]


def test_only_another_version_that_is_known_counts() -> None:
    assert this_torch() == torch.__version__.partition("+")[0]
    for text in (None, "", "{}", "[]", "no json", '{"torch": "not installed"}'):
        assert other_torch(text) is None
    assert other_torch(json.dumps({"torch": torch.__version__})) is None
    assert other_torch(json.dumps({"torch": f"{this_torch()}+cu130"})) is None
    assert other_torch('{"torch": "2.9.1+cpu"}') == "2.9.1"


def computed_with(folder: Path, version: str) -> None:
    """As if all runs of a store had been computed with another torch."""
    with sqlite3.connect(folder / DATABASE) as database:
        text = json.dumps({"torch": version})
        database.execute("update tags set value = ? where key = ?", (text, VERSIONS))


def test_a_result_that_is_reused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [*QUICK, f"tracking.uri={new_store(tmp_path)}"]
    first = train(settings)
    versions = json.loads(tags_of(tmp_path, first.run_id)[VERSIONS])
    assert versions["torch"].partition("+")[0] == this_torch()
    again = train(settings)
    assert (again.reused, again.other_torch) == (True, None)
    computed_with(tmp_path, "2.9.1+cpu")
    again = train(settings)
    assert (again.reused, again.other_torch) == (True, "2.9.1")
    line = f"it was computed with torch 2.9.1; torch {this_torch()} may differ in its last bits"
    assert line in summary(compose(settings), again).splitlines()
    out = ["--out", str(tmp_path / "outputs"), "--executor", "inline"]
    assert sweep.main([*settings, *out, "--progress", "plain"]) == 0
    line = "1 run computed before with torch 2.9.1: taken as they are, "
    assert f"{line}torch {this_torch()} may differ" in capsys.readouterr().err


def test_a_run_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*QUICK, f"tracking.uri={new_store(tmp_path)}", "train.checkpoint_every=2"]
    monkeypatch.setattr("lit_byz.execution.checkpoints.this_torch", lambda: "2.9.1")
    stopped = train(settings, stop_above=0.0)
    assert stopped.status == "bounded"
    monkeypatch.undo()
    found = train(settings)
    assert (found.status, found.run_id, found.resumed_at) == ("finished", stopped.run_id, 2)
    line = f"this run began with torch 2.9.1 and goes on with {this_torch()}: its last bits may"
    assert capsys.readouterr().err.count(line) == 1
    tag = tags_of(tmp_path, found.run_id)["lit_byz.resumed_with"]
    assert tag == f"torch {this_torch()} after 2.9.1"


def test_a_run_that_goes_on_as_it_began_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [*QUICK, f"tracking.uri={new_store(tmp_path)}", "train.checkpoint_every=2"]
    train(settings, stop_above=0.0)
    found = train(settings)
    assert (found.status, found.resumed_at) == ("finished", 2)
    assert capsys.readouterr().err == ""
    assert "lit_byz.resumed_with" not in tags_of(tmp_path, found.run_id)
