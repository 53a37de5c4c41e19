"""A few steps of runs against the clock, and a hard limit of time for all of them together."""

import contextlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.callbacks import Callback

from lit_byz import _native
from lit_byz._threads import threads
from lit_byz.config.compose import as_config
from lit_byz.config.grid import Point
from lit_byz.execution.assemble import make_module, make_trainer, quiet_lightning
from lit_byz.tracking.tracked_costs import Cost

if TYPE_CHECKING:
    from lit_byz.training import RobustDSGD

# Steps of a kind that are timed, the first of which also warms up, and seconds after which even
# two of them are enough.
STEPS, ENOUGH = 5, 1.0
# Seconds for the test images of a data set and a model, of which some are timed.
EVALUATING = 1.0


class _Over(BaseException):
    """The time is over, or a signal came; no handler of errors is to take it for one."""

    def __init__(self, number: int) -> None:
        self.number = number


def time_kinds(kinds: Sequence[tuple[str, Point]], seconds: float) -> dict[str, Cost]:
    """What runs of these kinds cost, as far as so many seconds go; at least the first.

    As in a process of a sweep, with one thread. A signal ends it at once.
    """
    _native.library()  # where it has to be compiled, that is no part of a step
    found: dict[str, Cost] = {}
    evaluations: dict[str, float] = {}
    deadline = time.monotonic() + seconds
    for kind, point in kinds:
        left = deadline - time.monotonic()
        if found and left <= 0:
            break
        clock = _Clock(deadline)
        with threads(1), _no_longer_than(left if found else max(left, 2 * ENOUGH)) as over:
            parts = (point.plain["dataset"], point.plain["model"], point.plain["data"])
            model = str(parts)
            module = make_module(_short(point))
            if model not in evaluations:
                evaluations[model] = _evaluation(module, point)
            _run(module, point, clock)
        if clock.steps:
            found[kind] = Cost(clock.seconds, evaluations.get(model, 0.0))
        elif over and not found:
            # Not one step in all that time: it takes at least so long.
            found[kind] = Cost(max(seconds, 2 * ENOUGH), 0.0)
    return found


def _short(point: Point) -> Any:
    train = {**point.plain["train"], "steps": STEPS, "eval_every": 10**9, "checkpoint_every": 0}
    tracking = {**point.plain["tracking"], "enabled": False}
    trainer = {**point.plain["trainer"], "devices": 1, "callbacks": []}
    return as_config({**point.plain, "train": train, "tracking": tracking, "trainer": trainer})


def _run(module: "RobustDSGD", point: Point, clock: "_Clock") -> None:
    with quiet_lightning():
        trainer = make_trainer(_short(point), [clock], None)
        trainer.limit_val_batches = 0
        trainer.fit(module)


@torch.no_grad()
def _evaluation(module: "RobustDSGD", point: Point) -> float:
    """Seconds that all test images would take, and those held out."""
    images, held_out = module.batches.images, len(module.batches.held_out)
    size = int(point.plain["data"]["test_batch_size"])
    model = module.model.eval()
    seen, begin = 0, 0.0
    for place, (x, _) in enumerate(images.test_batches(size)):
        if place == 1:  # the first one warms up, unless it is the only one
            seen, begin = 0, time.perf_counter()
        elif place == 0:
            begin = time.perf_counter()
        model(x.to(next(model.parameters()).dtype))
        seen += len(x)
        if time.perf_counter() - begin > EVALUATING:
            break
    model.train()
    return (time.perf_counter() - begin) * (images.test_size + held_out) / max(seen, 1)


class _Clock(Callback):
    """Times each step; after enough of them, or after the deadline, the run ends."""

    def __init__(self, deadline: float) -> None:
        self.steps: list[float] = []
        self.deadline = deadline
        self._begin = 0.0
        self._first = 0.0

    @property
    def seconds(self) -> float:
        """Of a step; the first one, which warms up, counts only where there is no other."""
        return statistics.median(self.steps[1:] or self.steps)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self._begin = time.perf_counter()
        self._first = self._first or self._begin

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        now = time.perf_counter()
        self.steps.append(now - self._begin)
        if now - self._first > ENOUGH and len(self.steps) > 1:
            trainer.should_stop = True
        if time.monotonic() > self.deadline:
            trainer.should_stop = True


@contextlib.contextmanager
def _no_longer_than(seconds: float) -> Iterator[list[bool]]:
    """Leave the block when time is over, whatever is going on in it; then the list is not empty.

    Ctrl-C and SIGTERM leave it too, and end the command as they would anywhere else: what is going
    on would hear of them only after its step. Only a process's main thread gets signals.
    """
    over: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield over
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise _Over(number)

    heard = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in heard}
    for number in heard:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, leave)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    came: int | None = None
    try:
        yield over
    except _Over as error:
        came = error.number
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    if came == signal.SIGALRM:
        over.append(True)
    elif came is not None:
        os.kill(os.getpid(), came)  # now that its usual handler is back
        time.sleep(1)  # it comes before this ends
        raise KeyboardInterrupt
