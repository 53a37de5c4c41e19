"""One run of a sweep, as it travels to whatever computes it, and what comes back."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lightning.pytorch.callbacks import Callback

# Seconds between two reports of one run.
REPORT_EVERY = 0.5


@dataclass(frozen=True)
class Task:
    """A run to compute: a plain config, so that it can be sent anywhere.

    ``stop_above`` is the maximal accuracy beyond which the run cannot matter any more.
    """

    index: int
    config: dict[str, Any]
    parent_run_id: str | None = None
    stop_above: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a task is."""

    index: int
    step: int
    steps: int
    max_accuracy: float


@dataclass(frozen=True)
class Outcome:
    """How a task ended: finished, diverged, bounded, interrupted or failed."""

    index: int
    status: str
    max_accuracy: float | None = None
    steps_done: int = 0
    seconds: float = 0.0
    run_id: str | None = None
    error: str | None = None
    reused: bool = False

    @property
    def complete(self) -> bool:
        return self.status in ("finished", "diverged")


class _Reporter(Callback):
    def __init__(self, index: int, report: Callable[[Progress], None]) -> None:
        self.index = index
        self.report = report
        self._last = 0.0

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        now = time.monotonic()
        if now - self._last < REPORT_EVERY:
            return
        self._last = now
        seen = trainer.logger.history.values.get("test/accuracy", [])
        steps = pl_module.settings.steps
        best = max(seen, default=0.0)
        self.report(Progress(self.index, pl_module.global_step, steps, best))


def compute(task: Task, report: Callable[[Progress], None]) -> Outcome:
    """Compute a task in this process; a failure is an outcome, not an exception."""
    from lit_byz.experiment.config import compose
    from lit_byz.experiment.run import train

    try:
        result = train(
            compose(["resume=auto"], beneath=task.config),
            callbacks=[_Reporter(task.index, report)],
            parent_run_id=task.parent_run_id,
            stop_above=task.stop_above,
        )
    except Exception as error:  # whatever a user's class may raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(task.index, "failed", error=text)
    return Outcome(
        index=task.index,
        status=result.status,
        max_accuracy=result.max_accuracy,
        steps_done=result.steps_done - (result.resumed_at or 0),
        seconds=result.seconds,
        run_id=result.run_id,
        reused=result.reused,
    )
