"""One task, computed here. What takes long to import is imported by this module."""

import time
from collections.abc import Callable
from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz._passwords import without_secrets_of
from lit_byz.config.compose import as_config
from lit_byz.execution.run import train_attempt
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.runs import Attempt
from lit_byz.tracking.store import default_uri

# Seconds between two reports of one run.
REPORT_EVERY = 0.5


class _Reporter(Callback):
    def __init__(self, identity: str, report: Callable[[Progress], None]) -> None:
        self.identity = identity
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
        self.report(Progress(self.identity, pl_module.global_step, steps, best))


def compute(task: Task, report: Callable[[Progress], None]) -> Outcome:
    """Compute a task in this process; a failure is an outcome, not an exception."""
    try:
        config = as_config({**task.config, "resume": "auto"})
        result = train_attempt(
            Attempt(config, task.code, task.parent_run_id),
            callbacks=[_Reporter(task.identity, report)],
            stop_above=task.stop_above,
            judged_on=task.judged_on,
        )
    except Exception as error:  # whatever a user's class may raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        text = without_secrets_of(text, task.config["tracking"]["uri"] or default_uri())
        return Outcome(task.identity, "failed", error=text)
    return Outcome(
        identity=task.identity,
        status=result.status,
        max_accuracy=result.max_accuracy,
        max_val_accuracy=result.max_val_accuracy,
        test_at_val_max=result.test_at_val_max,
        steps_done=result.steps_done - (result.resumed_at or 0),
        seconds=result.seconds,
        run_id=result.run_id,
        reused=result.reused,
    )
