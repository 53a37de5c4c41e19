"""Metrics while a run goes on: soon, at little cost, and every step once whatever happens."""

import math
import time
from pathlib import Path

import pytest

from lit_byz.tracking import Store, Tracker, open_store
from lit_byz.tracking import logger as logger_module
from tests.tracking._stores import new_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(new_store(tmp_path))


@pytest.fixture
def run_id(store: Store) -> str:
    return str(store.client.create_run(store.experiment("tests")).info.run_id)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write at every step."""
    monkeypatch.setattr(logger_module, "LIVE", 0.0)
    monkeypatch.setattr(logger_module, "SHARE", 1e9)


def raw(store: Store, run_id: str, key: str) -> list[tuple[int, float]]:
    """All that the store has, doubled or not."""
    return sorted((m.step, m.value) for m in store.client.get_metric_history(run_id, key))


@pytest.mark.usefixtures("at_once")
def test_what_was_measured_is_seen_before_a_checkpoint(store: Store, run_id: str) -> None:
    tracker = Tracker(store, run_id)
    for step in range(3):
        tracker.log_metrics({"x": float(step)}, step)
        assert raw(store, run_id, "x") == [(s, float(s)) for s in range(step + 1)]


def test_a_slow_store_is_asked_less_often(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_module, "LIVE", 0.0)
    monkeypatch.setattr(logger_module, "SHARE", 1e-6)  # as if a write took an hour
    tracker = Tracker(store, run_id)
    for step in range(5):
        tracker.log_metrics({"x": float(step)}, step)
    assert raw(store, run_id, "x") == [(0, 0.0)]
    tracker.save()
    assert len(raw(store, run_id, "x")) == 5


@pytest.mark.usefixtures("at_once")
def test_steps_beyond_the_checkpoint_are_not_doubled(store: Store, run_id: str) -> None:
    """Killed after step 5, the last checkpoint after step 2: 3 to 5 are computed once more."""
    killed = Tracker(store, run_id)
    for step in range(6):
        killed.log_metrics({"x": float(step), "speed/steps_per_second": 1.0 + step}, step)
    again = Tracker(store, run_id)
    again.restore({"x": [(step, float(step)) for step in range(3)]})
    for step in range(3, 8):
        again.log_metrics({"x": float(step), "speed/steps_per_second": 100.0 + step}, step)
    again.save()
    assert raw(store, run_id, "x") == [(step, float(step)) for step in range(8)]
    assert [step for step, _ in raw(store, run_id, "speed/steps_per_second")] == list(range(8))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_doubled_either(store: Store, run_id: str, value: float) -> None:
    killed = Tracker(store, run_id)
    for step in range(3):
        killed.log_metrics({"x": value}, step)
    again = Tracker(store, run_id)
    again.restore({"x": [(0, value)]})
    for step in range(1, 4):
        again.log_metrics({"x": value}, step)
    assert [step for step, _ in raw(store, run_id, "x")] == [0, 1, 2, 3]


@pytest.mark.usefixtures("at_once")
def test_where_a_step_comes_out_otherwise_the_last_value_counts(store: Store, run_id: str) -> None:
    """Going on on another kind of processor: what the run then made of it is what it reports."""
    killed = Tracker(store, run_id)
    for step in range(6):
        killed.log_metrics({"x": float(step)}, step)
    again = Tracker(store, run_id)
    again.restore({"x": [(step, float(step)) for step in range(3)]})
    for step in range(3, 8):
        again.log_metrics({"x": step + (0.5 if step > 3 else 0.0)}, step)
    assert store.history(run_id, "x") == again.history.pairs()["x"]
    assert raw(store, run_id, "x").count((3, 3.0)) == 1  # which was the same
    third = Tracker(store, run_id)
    third.restore({"x": again.history.pairs()["x"][:5]})
    for step, value in again.history.pairs()["x"][5:]:
        third.log_metrics({"x": value}, step)
    third.save()
    assert len(raw(store, run_id, "x")) == 8 + 2  # steps 4 and 5 twice, nothing a third time


def test_a_checkpoint_that_says_otherwise_counts(store: Store, run_id: str) -> None:
    """Of a process that was killed between its checkpoint and the writing of what is in it.

    Before it, one whose clock is ahead by an hour had written other values.
    """
    from mlflow.entities import Metric

    ahead = int(time.time() * 1000) + 3_600_000
    store.client.log_batch(run_id, [Metric("x", float(s), ahead, s) for s in range(6)])
    restored = [(s, s + (0.5 if s > 2 else 0.0)) for s in range(5)]
    again = Tracker(store, run_id)
    again.restore({"x": restored})
    again.log_metrics({"x": 5.5}, 5)
    again.save()
    assert store.history(run_id, "x") == [*restored, (5, 5.5)]
    assert store.client.get_run(run_id).data.metrics == {"x": 5.5}
    assert len(raw(store, run_id, "x")) == 6 + 3


@pytest.mark.parametrize("arc", [True, False])
def test_a_run_of_before_goes_on_under_both_names(store: Store, run_id: str, arc: bool) -> None:
    """Its threshold, of ARC or static, was called arc/threshold."""
    before = Tracker(store, run_id)
    for step in range(3):
        before.log_metrics({"arc/threshold": float(step)}, step)
    before.save()
    again = Tracker(store, run_id)
    again.restore(before.history.pairs())
    for step in range(3, 5):
        old = {"arc/threshold": float(step)} if arc else {}
        again.log_metrics({"clip/threshold": float(step), **old}, step)
    again.save()
    expected = [(step, float(step)) for step in range(5)]
    assert raw(store, run_id, "clip/threshold") == expected
    assert raw(store, run_id, "arc/threshold") == expected


def test_a_finished_run_of_before_is_found_under_the_new_name(store: Store, run_id: str) -> None:
    before = Tracker(store, run_id)
    before.log_metrics({"arc/threshold": 2.0}, 0)
    before.save()
    assert store.history(run_id, "clip/threshold") == [(0, 2.0)]
    assert store.history(run_id, "arc/threshold") == [(0, 2.0)]
