"""Stores that hang: nothing is refused, and nothing is answered."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from lit_byz.tracking import Store, Tracker, open_store, silence
from lit_byz.tracking import logger as logger_module
from lit_byz.tracking.claims import ClaimLost
from lit_byz.tracking.patience import StoreGone, is_away
from tests.tracking._stores import new_store

LONG = 120.0  # seconds: only a test that fails waits for so long


class Hanging:
    """A client whose writing hangs until it is released."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked, self.released = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def log_batch(self, *args: Any, **kwargs: Any) -> Any:
        self.asked.set()
        assert self.released.wait(LONG), "nobody goes on while the store hangs"
        return self._client.log_batch(*args, **kwargs)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(logger_module, "MOST_WAIT", 0.05)
    monkeypatch.setattr(logger_module, "SILENT", 0.0)
    opened = open_store(new_store(tmp_path))
    hanging = replace(opened, asked_once=Hanging(opened.asked_once))
    monkeypatch.setattr(hanging.patience, "tell", lambda text: None)
    return hanging


@pytest.fixture
def run_id(store: Store) -> str:
    return str(store.client.create_run(store.experiment("tests")).info.run_id)


def hangs(store: Store) -> Hanging:
    assert isinstance(store.asked_once, Hanging)
    return store.asked_once


def test_training_goes_on_and_nothing_is_lost(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, client = Tracker(store, run_id), hangs(store)
    tracker.log_metrics({"x": 0.0}, 0)
    tracker.save()  # which comes back though the store does not
    assert client.asked.wait(LONG)
    for step in range(1, 5):
        tracker.log_metrics({"x": float(step)}, step)
        tracker.save()
        tracker.check()
    assert not client.released.is_set()
    assert tracker.away, "who watches is told, and patience counts"
    assert not tracker.gone
    monkeypatch.setattr(logger_module, "SILENT", LONG)
    client.released.set()
    tracker.settle()
    assert not tracker.away
    found = store.client.get_metric_history(run_id, "x")
    assert sorted(m.step for m in found) == [0, 1, 2, 3, 4]


def test_a_run_that_is_asked_to_end_does_not_wait_for_it(store: Store, run_id: str) -> None:
    tracker, client = Tracker(store, run_id), hangs(store)
    tracker.log_metrics({"x": 0.0}, 0)
    tracker.save()
    store.patience.hurried = True
    with pytest.raises(StoreGone):
        tracker.settle()
    client.released.set()


def test_what_goes_wrong_in_the_background_is_raised_once(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_module, "MOST_WAIT", LONG)

    class Lost:
        def check(self) -> None:
            raise ClaimLost("gone")

        def give_back(self) -> None:
            return

    tracker = Tracker(store, run_id, Lost())
    tracker.log_metrics({"x": 0.0}, 0)
    with pytest.raises(ClaimLost):
        tracker.save()
    tracker.check()
    assert not hangs(store).asked.is_set(), "nothing is written without the claim"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server that takes connections, and says nothing."""
    extensions = pytest.importorskip("psycopg2").extensions
    before = extensions.get_wait_callback()
    extensions.set_wait_callback(None)
    monkeypatch.setattr(silence, "MOST", 0.1)
    silence.limit_silence()
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
    extensions.set_wait_callback(before)


def test_postgresql_that_says_nothing_is_away(silent: int) -> None:
    engine = create_engine(f"postgresql+psycopg2://me:secret@127.0.0.1:{silent}/runs")
    found: list[BaseException] = []

    def ask() -> None:
        try:
            with engine.connect() as connection:
                connection.execute(text("select 1"))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # in vain, it would wait for ever
    thread.start()
    thread.join(LONG)
    assert not thread.is_alive()
    assert is_away(found[0])
    assert "no answer" in str(found[0])
