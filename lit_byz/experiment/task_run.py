"""One task of a sweep, computed here. What takes long to import is imported by this module."""

import time
from collections.abc import Callable
from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz.experiment.config import compose
from lit_byz.experiment.run import train
from lit_byz.experiment.tasks import Outcome, Progress, Task

# Seconds between two reports of one run.
REPORT_EVERY = 0.5


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
