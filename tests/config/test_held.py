"""What callbacks hold that are given as objects: all of it counts, and nothing by its address."""

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import Callback, LambdaCallback

from lit_byz import train
from lit_byz.config.identity import of_callbacks
from lit_byz.config.typed_in import held_by
from tests.tracking._stores import new_store


class Holding(Callback):
    def __init__(self, value: Any) -> None:
        self.value = value


def scaling(factor: float) -> Callable[..., None]:
    def scale(trainer: Any, module: Any, *_: Any) -> None:
        with torch.no_grad():
            module.flat.parameters[0].mul_(factor)

    return scale


def changed(kind: Any) -> Any:
    """More numbers than a text of an array shows, of which one in the middle is another."""
    array = np.zeros(5000)
    array[2500] = 1
    return kind(array)


class Plain:
    def __init__(self, value: float) -> None:
        self.value = value


SAME: list[Callable[[], Any]] = [
    lambda: np.zeros(5000),
    lambda: changed(np.asarray),
    lambda: torch.zeros(5000),
    lambda: changed(torch.as_tensor),
    lambda: [np.zeros(5000), changed(np.asarray)],
    lambda: [changed(np.asarray), np.zeros(5000)],
    lambda: torch.zeros(50, 100),
    lambda: torch.zeros(5000, dtype=torch.bfloat16),
    lambda: torch.ones(5000, dtype=torch.bfloat16),
    lambda: np.asarray([None, 1]),
    lambda: np.asarray([None, 2]),
    lambda: np.float64(3),
    lambda: scaling(0.5),
    lambda: scaling(0.25),
    lambda: lambda x: x + 1,
    lambda: lambda x: x + 2,
    lambda: Plain(0.5),
    lambda: Plain(0.25),
    lambda: torch.relu,
    lambda: torch.tanh,
]


def test_what_they_hold_counts() -> None:
    found = [of_callbacks([Holding(make())]) for make in SAME]
    assert len(set(found)) == len(found)
    gc.collect()
    assert [of_callbacks([Holding(make())]) for make in SAME] == found


def test_many_numbers_are_read_at_once() -> None:
    begin = time.process_time()
    of_callbacks([Holding(torch.zeros(10_000_000))])
    assert time.process_time() - begin < 2


def test_what_cannot_be_looked_at_is_nothing_elses() -> None:
    locks = [held_by(threading.Lock(), None)[0] for _ in range(50)]
    assert len(set(locks)) == 50
    lock = threading.Lock()
    assert held_by(lock, None) == held_by(lock, None)


def test_a_run_is_not_taken_for_anothers(tmp_path: Any) -> None:
    settings = {"dataset": "digits", "model": "logreg", "train.steps": 4, "train.eval_every": 4}
    settings |= {"attack": "sf", "resume": "auto", "tracking.figures": False}
    settings["tracking.uri"] = new_store(tmp_path)
    found = []
    for factor in (0.9, 0.1, 0.9):
        given = LambdaCallback(on_train_batch_end=scaling(factor))
        found.append(train(settings, callbacks=[given]))
        gc.collect()
    first, second, again = found
    assert (first.reused, second.reused, again.reused) == (False, False, True)
    assert first.history["test/loss"] == again.history["test/loss"]
    assert first.history["test/loss"] != second.history["test/loss"]


def test_what_raises_when_it_is_looked_at_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Exception, match="Holding: what it uses of this session cannot be told"):
        of_callbacks([Holding(deep)])
