"""Passwords of stores in what runs tell, and in what a browser is started with."""

from pathlib import Path
from typing import Any

import pytest
import requests

from lit_byz.cli import ui
from lit_byz.config.compose import compose
from lit_byz.errors import RunFailed
from lit_byz.execution.kept import config_of, save_models
from lit_byz.tracking import open_store
from lit_byz.tracking.new_run import Attempt
from lit_byz.tracking.page import page_of_run
from lit_byz.tracking.runs import open_run
from lit_byz.tracking.store import Store
from tests.tracking._ledgers import begin, some_points
from tests.tracking._stores import new_store

SECRET = "not-to-be-seen"
ADDRESS = f"http://me:{SECRET}@store:5000"


def refused(*_: Any, **__: Any) -> None:
    raise requests.HTTPError(f"413 Client Error: Too Large for url: {ADDRESS}/api/2.0/artifacts")


def test_a_model_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (point,) = some_points(tmp_path, ["sf"])
    run = open_run(Attempt(point.config, point.code))
    monkeypatch.setattr(type(run.tracker), "save_file", refused)
    with pytest.warns(UserWarning, match="the run's model could not be kept: 413 ") as told:
        save_models(run, {"final": {}}, compose([]))
    assert not [each for each in told if SECRET in str(each.message)]


def test_files_that_cannot_be_read_are_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (point,) = some_points(tmp_path, ["sf"])
    run_id, store = begin(point), open_store(new_store(tmp_path))
    monkeypatch.setattr(store.asked_once, "list_artifacts", refused)
    with pytest.raises(RunFailed, match=f"^run {run_id}: its files cannot be read: 413 ") as told:
        config_of(store, run_id)
    assert SECRET not in str(told.value)


def test_a_store_that_refuses_does_not_say_that_there_is_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import PERMISSION_DENIED

    store = open_store(new_store(tmp_path))
    assert store.run("nonsense") is None

    def denied(*_: Any) -> None:
        raise MlflowException("Permission denied", PERMISSION_DENIED)

    monkeypatch.setattr(store.asked_once, "get_run", denied)
    with pytest.raises(MlflowException, match="Permission denied"):
        store.run("nonsense")


@pytest.mark.parametrize("user", [f"me:{SECRET}@", f"{SECRET}@", ""])
def test_a_browser_is_not_given_the_password(
    user: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would stand in the list of processes, and in the browser's history."""
    store = Store.of(f"http://{user}store:5000/", None)  # type: ignore[arg-type]
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(ui, "_page", lambda *_: page_of_run(store, "1", "a_run"))
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert ui.main(["a_run"]) == 0
    link = "http://store:5000/#/experiments/1/runs/a_run?workflowType=machine_learning"
    assert opened == [link]
    assert capsys.readouterr().out == f"{link}\n"
