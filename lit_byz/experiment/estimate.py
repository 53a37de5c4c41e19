"""What a sweep would cost, from a few measured steps."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz.experiment.config import compose, to_plain
from lit_byz.experiment.grid import Point
from lit_byz.experiment.run import train

MEASURED_STEPS = 4
# Rows of a step's metrics in SQLite, and the figures and settings of a run, in bytes.
STEP_BYTES = 11 * 150
RUN_BYTES = 250_000


@dataclass(frozen=True)
class Estimate:
    """Seconds of one core, and bytes in the store."""

    seconds: float
    bytes: int


def estimate(points: Sequence[Point]) -> Estimate:
    """Time a few steps of one run of each kind, and add up.

    Runs of a kind differ in seed, partition and settings of training, which do not change what a
    step costs; everything else does.
    """
    seconds: dict[str, tuple[float, float]] = {}
    total = 0.0
    size = 0
    for point in points:
        kind = _kind(point)
        if kind not in seconds:
            seconds[kind] = _measure(point)
        step, evaluation = seconds[kind]
        steps, every = int(point.config.train.steps), int(point.config.train.eval_every)
        total += step * steps + evaluation * (steps / every)
        size += steps * STEP_BYTES + RUN_BYTES
    return Estimate(total, size)


def _kind(point: Point) -> str:
    plain = to_plain(point.config)
    parts = ("dataset", "model", "workers", "clip", "mix", "rule", "attack")
    return repr([(part, plain[part].get("name"), plain[part].get("f")) for part in parts])


def _measure(point: Point) -> tuple[float, float]:
    """Seconds of a step and of an evaluation."""
    plain = to_plain(point.config)
    plain["tracking"]["enabled"] = False
    plain["train"] |= {"steps": MEASURED_STEPS, "eval_every": 10**9, "checkpoint_every": 0}
    clock = _Clock()
    train(compose(beneath=plain), callbacks=[clock])
    return min(clock.steps[1:], default=0.0), clock.evaluation


class _Clock(Callback):
    """Times each step, and the evaluation after the last; the first step also warms up."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.evaluation = 0.0
        self._begin = 0.0

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self._begin = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        taken = time.perf_counter() - self._begin
        if pl_module.global_step < pl_module.settings.steps:
            self.steps.append(taken)
        elif self.steps:
            # The last step was evaluated too, before this callback's turn.
            self.evaluation = max(0.0, taken - min(self.steps))
