"""Where stores are, and what is said when they cannot be opened."""

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lit_byz.errors import BadRequest, RunFailed
from lit_byz.tracking import default_uri, flatten, open_store
from tests.tracking._stores import DATABASE, new_store, uri

OPEN = """
import sys
from lit_byz.tracking import open_store
store = open_store(sys.argv[1])
experiment = store.experiment("shared")
run = store.client.create_run(experiment)
store.client.log_metric(run.info.run_id, "x", 1.0)
print(experiment)
"""


@pytest.mark.slow
def test_two_processes_make_one_store(tmp_path: Path) -> None:
    address = uri(tmp_path / "new" / "place")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, address],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    store = open_store(address)
    assert len(store.client.search_runs([store.experiment("shared")])) == 2
    database = sqlite3.connect(tmp_path / "new" / "place" / "mlflow.db")
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_where_the_store_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_uri() == "sqlite:///mlruns/mlflow.db"
    new_store(tmp_path / "mlruns")
    store = open_store()
    assert store.sqlite_file == Path("mlruns/mlflow.db")
    assert store.ui_command == "lit-byz ui"
    found = store.client.get_experiment(store.experiment("lit_byz"))
    assert found.artifact_location == (tmp_path / "mlruns" / "artifacts" / "lit_byz").as_uri()
    address = new_store(tmp_path / "elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert default_uri() == address
    assert open_store().uri == address
    assert open_store().folder == tmp_path / "elsewhere"
    assert open_store(uri(tmp_path / "mlruns")).uri != address


@pytest.mark.parametrize("new", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_store_is_that_of_the_folder_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    """As in a notebook that changes its working directory: MLflow keeps connections to files."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name in ("one", "two", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        if not new:  # which takes MLflow seconds
            new_store(tmp_path / name / "mlruns")
        monkeypatch.chdir(tmp_path / name)
        client = open_store().client
        client.set_experiment_tag(open_store().experiment("lit_byz"), "seen in", name)
    for name in ("one", "two"):
        with contextlib.closing(sqlite3.connect(tmp_path / name / "mlruns" / "mlflow.db")) as there:
            assert there.execute("select value from experiment_tags").fetchall() == [(name,)]


def test_a_store_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a process, at a place: opening one takes MLflow a while."""
    address = new_store(tmp_path / "one")
    store = open_store(address)
    assert open_store(address) is store
    assert open_store(new_store(tmp_path / "other")) is not store
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert open_store() is store
    monkeypatch.chdir(tmp_path)
    here = open_store("sqlite:///one/mlflow.db")
    assert here.folder == Path("one")
    monkeypatch.chdir(tmp_path / "other")
    assert open_store(f"sqlite:///{DATABASE}").folder == Path()


def test_places_with_spaces(tmp_path: Path) -> None:
    new_store(tmp_path / "my runs")
    store = open_store(uri(tmp_path / "my runs"))
    assert store.folder == tmp_path / "my runs"
    assert store.experiment("a b") == store.experiment("a b")


def test_places_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "text.db").write_text("this is no database, and much longer than a header" * 10)
    for address in (
        f"sqlite:///{tmp_path}/file/mlflow.db",
        f"sqlite:///{tmp_path}/text.db",
        f"sqlite:///{tmp_path}",
        "carrier-pigeon://coop",
        "http://127.0.0.1:9",
    ):
        with pytest.raises(RunFailed) as caught:
            open_store(address)
        message = str(caught.value)
        assert message.startswith(f"tracking.uri = {address}: cannot be opened: "), message
        assert "\n" not in message


def test_experiments(tmp_path: Path) -> None:
    store = open_store(new_store(tmp_path))
    first = store.experiment("one")
    assert store.experiment("one") == first
    assert store.experiment("two") != first
    store.client.delete_experiment(first)
    with pytest.raises(BadRequest, match=r"tracking\.experiment = one: .* is deleted"):
        store.experiment("one")


def test_finding_runs(tmp_path: Path) -> None:
    store = open_store(new_store(tmp_path))
    experiment = store.experiment("one")
    parent = store.client.create_run(experiment).info.run_id
    made = [
        store.client.create_run(
            experiment,
            start_time=1 + number,
            tags={"lit_byz.identity": "abc", "mlflow.parentRunId": parent},
        ).info.run_id
        for number in range(3)
    ]
    assert [run.info.run_id for run in store.find(experiment, "abc")] == made[::-1]
    assert {run.info.run_id for run in store.children(experiment, parent)} == set(made)
    assert store.find(experiment, "other") == []


def test_flat_settings() -> None:
    nested = {"a": {"b": {"c": 1}, "d": None}, "e": [1, 2], "f": "x" * 300}
    assert flatten(nested) == {"a.b.c": "1", "a.d": "None", "e": "[1, 2]", "f": "x" * 250}
