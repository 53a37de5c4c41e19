"""Patience with a store that is away."""

import http.server
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import OperationalError

from lit_byz._quiet import quiet
from lit_byz.tracking import patience as module
from lit_byz.tracking.patience import Patience, StoreGone, is_away, patient

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
    monkeypatch.setattr(module, "SHORT", 0.02)
    monkeypatch.setattr(Server, "failures", [])


@pytest.fixture
def place() -> Iterator[socket.socket]:
    """A port that nobody else can take, and at which nobody answers as yet."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken


@contextmanager
def serving(place: socket.socket) -> Iterator[None]:
    address = place.getsockname()
    with http.server.ThreadingHTTPServer(address, Server, bind_and_activate=False) as running:
        running.socket.close()
        running.socket = place
        running.server_activate()
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield
        finally:
            running.shutdown()


def made(place: socket.socket, seconds: float = 250.0) -> tuple[Patience, list[str]]:
    told: list[str] = []
    return Patience(f"http://me:{SECRET}@127.0.0.1:{port(place)}", seconds, told.append), told


def port(place: socket.socket) -> int:
    return int(place.getsockname()[1])


def test_a_store_that_comes_back_answers(place: socket.socket) -> None:
    """As soon as it is said to be away."""
    patience, told = made(place)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)
    with ExitStack() as stack:

        def come_back(text: str) -> None:
            told.append(text)
            if len(told) == 1:
                stack.enter_context(serving(place))

        patience.tell = come_back
        assert client.get_experiment_by_name("one").experiment_id == "7"
    first, last = told
    assert first.startswith("store away since ")
    assert "runs go on for at most 250 s" in first
    assert last.startswith("store back after ")
    assert SECRET not in "".join(told)
    assert not patience.away


def test_what_passes_is_asked_again(place: socket.socket) -> None:
    patience, told = made(place)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)
    with serving(place):
        Server.failures += [503, 502, 500]
        assert client.get_experiment_by_name("one").experiment_id == "7"
        assert not Server.failures
        Server.failures += [403]
        with pytest.raises(MlflowException):
            client.get_experiment_by_name("one")
    assert len(told) == 2


class Clock:
    """A module ``time`` in which nothing but waiting takes any."""

    strftime = staticmethod(time.strftime)
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_patience_ends(place: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    patience, told = made(place, 50)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)
    with pytest.raises(StoreGone) as error:
        client.get_experiment_by_name("one")
    assert 50 <= clock.seconds <= 50 + module.LONG
    begin = f"tracking.uri = http://me:***@127.0.0.1:{port(place)}: away since"
    assert str(error.value).startswith(begin)
    assert len(told) == 1
    assert patience.over


def test_nobody_waits_who_is_asked_to_end(
    place: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even until the next attempt."""
    monkeypatch.setattr(module, "SHORT", 200.0)
    patience, told = made(place, 1000)
    client = patient(MlflowClient(tracking_uri=patience.uri), patience)

    def hurry(text: str) -> None:
        told.append(text)
        threading.Timer(0.3, lambda: setattr(patience, "hurried", True)).start()

    patience.tell = hurry
    begin = time.monotonic()
    with pytest.raises(StoreGone):
        client.get_experiment_by_name("one")
    assert time.monotonic() - begin < 100
    assert len(told) == 1


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
