"""One task, computed here. What takes long to import is imported by this module."""

import math
import time
import traceback
from collections.abc import Callable
from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz._passwords import without_secrets_of
from lit_byz.config.compose import as_config
from lit_byz.config.identity import refuse_other_code
from lit_byz.errors import disk_fails, disk_is_full
from lit_byz.execution.result import TrainResult
from lit_byz.execution.run import train_attempt
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.attempts import store_of
from lit_byz.tracking.claims import Elsewhere, NotAwaited
from lit_byz.tracking.evaluations import MEAN_LAST, VAL_ACCURACY, VAL_MEAN_LAST, means
from lit_byz.tracking.leases import lease_seconds
from lit_byz.tracking.new_run import Attempt
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.patience import StoreGone, told_to
from lit_byz.tracking.store import default_uri

# Seconds between two reports of one run.
REPORT_EVERY = 0.5


def ends_of(result: TrainResult) -> dict[str, Any]:
    """The last evaluations of a complete run, and their means."""
    if result.status not in ("finished", "diverged"):
        return {}
    found = means(result.history, result.status)
    validated = result.history.get(VAL_ACCURACY)
    return {
        "last_accuracy": result.accuracy,
        "mean_last": found.get(MEAN_LAST),
        "last_val_accuracy": validated[-1][1] if validated else None,
        "val_mean_last": found.get(VAL_MEAN_LAST),
    }


class _Reporter(Callback):
    def __init__(self, identity: str, report: Callable[[Progress], None], judged_on: str) -> None:
        self.identity = identity
        self.report = report
        self.judged_on = judged_on
        self.state = (0, 0, 0.0)
        self._last = 0.0

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        now = time.monotonic()
        if now - self._last < REPORT_EVERY:
            return
        self._last = now
        seen = trainer.logger.history.values.get(f"{self.judged_on}/accuracy", [])
        steps = pl_module.settings.steps
        self.state = (pl_module.global_step, steps, max(seen, default=0.0))
        self.report(Progress(self.identity, *self.state))

    def tell(self, text: str) -> None:
        self.report(Progress(self.identity, *self.state, note=text))


def compute(task: Task, report: Callable[[Progress], None]) -> Outcome:
    """Compute a task in this process; a failure is an outcome, not an exception.

    Without space on the disk a run is as good as not begun: it can be computed later.
    """
    reporter = _Reporter(task.identity, report, task.judged_on)
    try:
        refuse_other_code(task.config, task.code.code)
        config = as_config({**task.config, "resume": "auto"})
        attempt = Attempt(config, task.code, task.parent_run_id, task.name)
        with told_to(reporter.tell, store_of(attempt).patience):
            result = train_attempt(
                attempt,
                callbacks=[reporter],
                stop_above=task.stop_above,
                judged_on=task.judged_on,
                # Long enough to see that a machine is gone; then others may need this process more.
                wait=2 * lease_seconds() if task.wait else 0.0,
            )
    except Elsewhere:
        return Outcome(task.identity, "elsewhere")
    except NotAwaited:  # it has not begun
        return Outcome(task.identity, "interrupted")
    except StoreGone as error:  # it has saved itself
        return Outcome(task.identity, "interrupted", error=str(error), store_gone=True)
    except Exception as error:  # whatever a user's class may raise
        uri = task.config["tracking"]["uri"] or default_uri()
        told = without_secrets_of(traceback.format_exc(), uri)
        if disk_is_full(error):
            text = "no space left on the disk"
            return Outcome(task.identity, "interrupted", error=text, disk_full=True, traceback=told)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        text = without_secrets_of(text, uri)
        status = "interrupted" if disk_fails(error) else "failed"  # which is not the run's fault
        return Outcome(task.identity, status, error=text, traceback=told)
    return Outcome(
        identity=task.identity,
        status=result.status,
        max_accuracy=_measured(result.max_accuracy),
        max_val_accuracy=_measured(result.max_val_accuracy),
        test_at_val_max=_measured(result.test_at_val_max),
        **ends_of(result),
        steps_done=result.steps_done - (result.resumed_at or 0),
        seconds=result.seconds,
        run_id=result.run_id,
        reused=result.reused,
    )


def _measured(accuracy: float | None) -> float | None:
    """An accuracy, if there has been an evaluation."""
    return None if accuracy is None or math.isnan(accuracy) else accuracy
