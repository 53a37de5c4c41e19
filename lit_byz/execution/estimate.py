"""What computing runs would cost, from a few measured steps."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz.config.compose import as_config
from lit_byz.config.grid import Point
from lit_byz.config.identity import identify
from lit_byz.execution.run import train_attempt
from lit_byz.tracking.runs import Attempt

MEASURED_STEPS = 4
# Seconds after which no further kind of run is measured: the others are taken to cost as those that
# were, of the same attack if there are any.
PATIENCE = 20.0
# Rows of a step's metrics in SQLite, and the figures and settings of a run, in bytes.
STEP_BYTES = 11 * 150
RUN_BYTES = 250_000


@dataclass(frozen=True)
class Estimate:
    """Seconds of one core, and bytes in the store."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class _Cost:
    """Seconds of a step and of an evaluation."""

    step: float
    evaluation: float


def estimate(points: Sequence[Point]) -> Estimate:
    """Time a few steps of one run of each kind, as far as patience goes, and add up.

    Runs of a kind differ in seed, partition and settings of training, which do not change what a
    step costs; everything else does.
    """
    kinds: dict[str, Point] = {}
    for point in points:
        kinds.setdefault(_kind(point), point)
    measured: dict[str, _Cost] = {}
    begin = time.monotonic()
    for kind, point in kinds.items():
        if measured and time.monotonic() - begin > PATIENCE:
            break
        measured[kind] = _measure(point)
    total, size = 0.0, 0
    for point in points:
        cost = measured.get(_kind(point)) or _like(point, measured, kinds)
        every = int(point.plain["train"]["eval_every"])
        total += cost.step * point.steps + cost.evaluation * (point.steps / every)
        size += point.steps * STEP_BYTES + RUN_BYTES
    return Estimate(total, size)


def _kind(point: Point) -> str:
    parts = ("dataset", "model", "workers", "clip", "mix", "rule", "attack")
    plain = point.plain
    return repr([(part, plain[part].get("name"), plain[part].get("f")) for part in parts])


def _like(point: Point, measured: dict[str, _Cost], kinds: dict[str, Point]) -> _Cost:
    """What a run costs that is of no measured kind: the median of those that are like it."""
    same = [cost for kind, cost in measured.items() if kinds[kind].attack == point.attack]
    costs = same or list(measured.values())
    return _Cost(
        statistics.median(cost.step for cost in costs),
        statistics.median(cost.evaluation for cost in costs),
    )


def _measure(point: Point) -> _Cost:
    train = {**point.plain["train"], "steps": MEASURED_STEPS, "eval_every": 10**9}
    train |= {"checkpoint_every": 0}
    tracking = {**point.plain["tracking"], "enabled": False}
    plain = {**point.plain, "train": train, "tracking": tracking}
    clock = _Clock()
    result = train_attempt(Attempt(as_config(plain), identify(plain)), callbacks=[clock])
    if result.status == "interrupted":
        raise KeyboardInterrupt  # the signal was for all measurements, not for this one
    return _Cost(min(clock.steps[1:], default=0.0), clock.evaluation)


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
