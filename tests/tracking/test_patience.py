"""Patience with a store that is away."""

import http.server
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import OperationalError

from lit_byz.tracking.patience import Patience, StoreGone, is_away, patient
from lit_byz.tracking.reach import quiet

SECRET = "not-to-be-seen"


class Server(http.server.BaseHTTPRequestHandler):
    """Knows one experiment, and fails as often as it is told to."""

    failures: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        code = self.failures.pop() if self.failures else 200
        found = {"experiment_id": "7", "name": "one", "lifecycle_stage": "active"}
        body = json.dumps({"experiment": found}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(port: int) -> Iterator[None]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Server) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield
        running.shutdown()


def made(port: int, seconds: float = 20.0) -> tuple[Patience, list[str]]:
    told: list[str] = []
    return Patience(f"http://me:{SECRET}@127.0.0.1:{port}", seconds, told.append), told


def test_a_store_that_comes_back_answers(port: int) -> None:
    patience, told = made(port)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)

    def later() -> None:
        time.sleep(0.5)
        with serving(port):
            time.sleep(3)

    thread = threading.Thread(target=later)
    thread.start()
    assert client.get_experiment_by_name("one").experiment_id == "7"
    thread.join()
    first, last = told
    assert first.startswith("store away since ")
    assert "runs go on for at most 20 s" in first
    assert last.startswith("store back after ")
    assert SECRET not in "".join(told)
    assert not patience.away


def test_what_passes_is_asked_again(port: int) -> None:
    patience, told = made(port)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)
    with serving(port):
        Server.failures += [503, 502, 500]
        assert client.get_experiment_by_name("one").experiment_id == "7"
        assert not Server.failures
        Server.failures += [403]
        with pytest.raises(MlflowException):
            client.get_experiment_by_name("one")
    assert len(told) == 2


def test_patience_ends(port: int) -> None:
    patience, told = made(port, 0.3)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)
    begin = time.monotonic()
    with pytest.raises(StoreGone) as error:
        client.get_experiment_by_name("one")
    assert 0.3 <= time.monotonic() - begin < 5
    assert str(error.value).startswith(f"tracking.uri = http://me:***@127.0.0.1:{port}: away since")
    assert len(told) == 1
    assert patience.over


def test_nobody_waits_who_is_asked_to_end(port: int) -> None:
    patience, _ = made(port, 60)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)
    threading.Timer(0.3, lambda: setattr(patience, "hurried", True)).start()
    begin = time.monotonic()
    with pytest.raises(StoreGone):
        client.get_experiment_by_name("one")
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("select", {}, sqlite3.OperationalError("database is locked")),
        MlflowException("(psycopg2.OperationalError) server closed the connection"),
        MlflowException("(psycopg2.InterfaceError) connection already closed"),
        ConnectionRefusedError(),
        TimeoutError(),
    ],
)
def test_away(error: Exception) -> None:
    assert is_away(error)
    around = RuntimeError("around it")
    around.__cause__ = error
    assert is_away(around)


@pytest.mark.parametrize(
    "error", [ValueError("no"), MlflowException("Run 'x' not found"), FileNotFoundError("x")]
)
def test_not_away(error: Exception) -> None:
    assert not is_away(error)
