"""Stores behind a server: with a user and a password in the address, as MLflow takes them."""

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.browser import mlflow_ui
from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution.run import train
from lit_byz.tracking import open_store
from lit_byz.tracking.page import page_of_run
from lit_byz.tracking.records import StudyRecord, as_tags

SECRET = "not-to-be-seen"
WHO = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()


class Guarded(http.server.BaseHTTPRequestHandler):
    """Tells those who show the password that there is one experiment."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == WHO
        found = {"experiment_id": "7", "name": "one", "lifecycle_stage": "active"}
        body = json.dumps({"experiment": found} if known else {}).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def place() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()


def test_a_user_and_a_password_are_taken(place: str) -> None:
    store = open_store(f"http://me:{SECRET}@{place}")
    assert store.experiment("one") == "7"
    assert store.ui_command == f"lit-byz ui 'tracking.uri=http://me:***@{place}'"


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(RunFailed) as told:
        open_store(f"http://me:{SECRET}@127.0.0.1:9")
    assert "tracking.uri = http://me:***@127.0.0.1:9: cannot be opened: " in str(told.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"http://me:not/{SECRET}@127.0.0.1:9", "http://me:***@127.0.0.1:9"),
        ("http://127.0.0.1:port/x", "http://127.0.0.1:port/x"),
        ("postgresql://127.0.0.1:port/x", "postgresql://127.0.0.1:port/x"),
        ("http://[::1/x", "http://[::1/x"),
        ("http://a b/", "http://a b/"),
    ],
)
def test_what_is_no_address(address: str, shown: str) -> None:
    with pytest.raises(BadRequest) as told:
        open_store(address)
    reason = "is no address; in a password / is written as %2F and @ as %40"
    assert str(told.value) == f"tracking.uri = {shown}: {reason}"


def test_studies_do_not_keep_passwords() -> None:
    shared = {"tracking": {"uri": f"postgresql://me:{SECRET}@host/db"}}
    tags = as_tags(StudyRecord("sweep", "key", "name", {"x": [f"a://b:{SECRET}@c"]}, shared))
    assert SECRET not in "".join(tags.values())
    assert "postgresql://me:***@host/db" in tags["lit_byz.record.0"]


@pytest.mark.slow
def test_nothing_that_is_kept_shows_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real server, which takes whoever comes."""
    monkeypatch.chdir(tmp_path)  # where it keeps artifacts
    with mlflow_ui(f"sqlite:///{tmp_path}/mlflow.db") as address:
        uri = address.replace("//", f"//me:{SECRET}@")
        settings = ["train.steps=2", "train.eval_every=1", "model=logreg", "attack=sf"]
        result = train([*settings, f"tracking.uri={uri}"])
        store = open_store(uri)
        run = store.client.get_run(result.run_id)
        assert run.info.status == "FINISHED"
        assert run.data.params["tracking.uri"] == address.replace("//", "//me:***@")
        kept = [*run.data.params.values(), *run.data.tags.values()]
        config = store.client.download_artifacts(result.run_id, "config.yaml", str(tmp_path))
        kept.append(Path(config).read_text())
        assert not [text for text in kept if SECRET in text]
        shown = address.replace("//", "//me:***@")
        assert store.ui_command == f"lit-byz ui 'tracking.uri={shown}'"
        assert page_of_run(store, "1", "a_run").link == (
            f"{address}/#/experiments/1/runs/a_run?workflowType=machine_learning"
        )
