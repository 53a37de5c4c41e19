"""``lit-byz list``: what the store has, and what can be chosen."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lit_byz import sweep, train
from lit_byz.cli.listing import GROUPS, KINDS, age, main
from lit_byz.config.components import options
from tests.tracking._filled import fill, some_points
from tests.tracking._stores import new_store

QUICK = ["dataset=digits", "model=logreg", "train.steps=2", "train.eval_every=2"]
QUICK += ["tracking.figures=false"]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a run of its own and a sweep of two cells, which is newer."""
    store = new_store(tmp_path_factory.mktemp("listed"))
    train([*QUICK, f"tracking.uri={store}"])
    grid = [*QUICK, f"tracking.uri={store}", "clip=[none,arc]", "attack=[sf]"]
    sweep(grid, executor="inline")
    return store


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_studies_and_loose_runs_newest_first(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys, f"tracking.uri={uri}")
    assert found["left_out"] == 0
    study, run = found["entries"]
    assert (study["kind"], study["name"], study["status"]) == (
        "sweep",
        "sweep of 2 runs",
        "finished",
    )
    assert (study["cells"], study["exact"]) == (2, 2)
    assert 0 < study["low"] <= study["high"] <= 1
    assert (run["kind"], run["status"], run["cells"]) == ("run", "finished", 0)
    assert run["low"] == run["high"] > 0
    assert 0 <= study["age_seconds"] <= run["age_seconds"]
    assert main([f"tracking.uri={uri}"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["kind", "name", "status", "accuracy", "in", "%", "age", "id"]
    assert [row.split()[0] for row in rows] == ["sweep", "run"]
    assert study["run_id"] in rows[0]
    assert "(2 cells)" in rows[0]


def test_a_store_that_is_not_there_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main([]) == 0
    assert capsys.readouterr().out == "nothing is there yet; for a first sweep:  lit-byz sweep\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("callbacks",)])
def test_what_can_be_chosen(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([kind]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = listed(capsys, kind)[kind]
    assert len(lines) == len(rows) > 2
    assert all(row["text"] for row in rows), rows
    if kind not in ("experiments", "strengths"):
        names = options(GROUPS.get(kind, kind.removesuffix("s")))
        assert [row["name"] for row in rows] == names
        assert [line.split()[0] for line in lines] == names


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rulez"], "unknown kind 'rulez': did you mean 'rules'?"),
        (["rules", "clips"], "list: one kind at a time, not rules, clips"),
        (["seed=1"], "seed=1: a list of the store takes tracking.key=value only"),
    ],
)
def test_bad_requests(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000.0
    monkeypatch.setattr("lit_byz.cli.listing.time", SimpleNamespace(time=lambda: now))
    for seconds, shown in ((0, "now"), (5, "5 s"), (130, "2 min"), (7300, "2 h"), (2e5, "2 d")):
        assert age(now - seconds) == shown


@pytest.mark.slow
def test_ten_thousand_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = new_store(tmp_path)
    fill(uri, some_points(10_000))
    begin = time.process_time()
    found = listed(capsys, f"tracking.uri={uri}")
    assert time.process_time() - begin < 3
    assert (len(found["entries"]), found["left_out"]) == (20, 9_980)
    assert len(listed(capsys, f"tracking.uri={uri}", "--all")["entries"]) == 10_000
