"""The buffered logger, and the history that it keeps."""

from argparse import Namespace
from pathlib import Path

import pytest

from lit_byz.tracking import History, Store, Tracker, open_store
from lit_byz.tracking import logger as logger_module
from lit_byz.tracking import store as store_module
from tests.tracking._stores import new_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(new_store(tmp_path))


@pytest.fixture
def run_id(store: Store) -> str:
    return str(store.client.create_run(store.experiment("tests")).info.run_id)


def test_history_has_one_value_per_step() -> None:
    history = History()
    assert history.add("a", 0, 1.0)
    assert history.add("a", 2, 2.0)
    assert not history.add("a", 2, 9.0)
    assert not history.add("a", 1, 9.0)
    assert history.add("b", 1, 3.0)
    assert history.pairs() == {"a": [(0, 1.0), (2, 2.0)], "b": [(1, 3.0)]}
    other = History()
    other.load(history.pairs())
    assert other.pairs() == history.pairs()
    assert not other.add("a", 2, 0.0)


def test_nothing_is_written_before_save(store: Store, run_id: str) -> None:
    tracker = Tracker(store, run_id)
    for step in range(5):
        tracker.log_metrics({"x": step / 2, "y": 1.0}, step)
    assert store.client.get_run(run_id).data.metrics == {}
    assert tracker.history.pairs()["x"] == [(step, step / 2) for step in range(5)]
    tracker.save()
    assert store.history(run_id, "x") == [(step, step / 2) for step in range(5)]
    tracker.save()
    tracker.log_metrics({"x": 7.0}, 4)  # known already
    tracker.log_metrics({"x": 3.0}, 5)
    tracker.finalize("success")
    assert store.history(run_id, "x") == [*((s, s / 2) for s in range(5)), (5, 3.0)]
    assert tracker.seconds > 0


def test_a_full_buffer_is_written(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_module, "MOST_BUFFERED", 6)
    tracker = Tracker(store, run_id)
    for step in range(4):
        tracker.log_metrics({"x": 1.0, "y": 1.0}, step)
    assert [step for step, _ in store.history(run_id, "x")] == [0, 1, 2]


def test_more_than_one_write_takes(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_module, "METRICS_AT_ONCE", 3)
    monkeypatch.setattr(store_module, "PARAMS_AT_ONCE", 2)
    tracker = Tracker(store, run_id)
    tracker.log_metrics({f"m{i}": float(i) for i in range(8)}, 0)
    tracker.write_settings({f"p{i}": i for i in range(5)})
    tracker.save()
    data = store.client.get_run(run_id).data
    assert data.metrics == {f"m{i}": float(i) for i in range(8)}
    assert data.params == {f"p{i}": str(i) for i in range(5)}


def test_steps_of_the_store_are_not_written_again(store: Store, run_id: str) -> None:
    first = Tracker(store, run_id)
    for step in range(4):
        first.log_metrics({"x": float(step)}, step)
    first.save()
    again = Tracker(store, run_id)
    for step in range(2, 6):  # as from a checkpoint after step 1
        again.log_metrics({"x": float(step), "z": 0.0}, step)
    again.save()
    assert store.history(run_id, "x") == [(step, float(step)) for step in range(6)]
    assert [step for step, _ in store.history(run_id, "z")] == [2, 3, 4, 5]


def test_restored_history_fills_the_store(store: Store, run_id: str) -> None:
    """What a checkpoint has and the store has not is written, the rest is not written twice."""
    first = Tracker(store, run_id)
    for step in range(2):
        first.log_metrics({"x": float(step)}, step)
    first.save()
    again = Tracker(store, run_id)
    again.restore({"x": [(step, float(step)) for step in range(4)], "y": [(1, 5.0)]})
    again.log_metrics({"x": 4.0}, 4)
    again.save()
    assert store.history(run_id, "x") == [(step, float(step)) for step in range(5)]
    assert store.history(run_id, "y") == [(1, 5.0)]


def test_without_a_store_it_remembers() -> None:
    tracker = Tracker()
    tracker.log_hyperparams({"a": 1})
    tracker.log_metrics({"x": 1.0}, 0)
    tracker.restore({"x": [(0, 1.0)]})
    tracker.save()
    tracker.save_file(Path("nowhere"))
    assert tracker.history.pairs() == {"x": [(0, 1.0)]}
    assert tracker.version is None


def test_params_are_flat_and_written_once(store: Store, run_id: str) -> None:
    tracker = Tracker(store, run_id)
    tracker.write_settings({"train": {"lr": 0.1, "lr_milestones": [1, 2]}, "text": "x" * 300})
    tracker.write_settings({"train": {"lr": 0.2, "steps": 5}})
    tracker.log_hyperparams(Namespace(seed=3))  # Lightning's own call: the config has it all
    assert store.client.get_run(run_id).data.params == {
        "train.lr": "0.1",
        "train.lr_milestones": "[1, 2]",
        "train.steps": "5",
        "text": "x" * 250,
    }


def test_files(store: Store, run_id: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    Tracker(store, run_id).save_file(tmp_path / "note.txt", "notes")
    (item,) = store.client.list_artifacts(run_id, "notes")
    assert item.path == "notes/note.txt"
    assert list((tmp_path / "artifacts" / "tests").glob("*/artifacts/notes/note.txt"))
