"""Where tasks are computed: what all executors have in common, and the simplest of them."""

from collections.abc import Callable
from typing import Protocol

from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome

NextTask = Callable[[], Task | None]
Report = Callable[[Progress | Outcome], None]
Stopping = Callable[[], bool]

# Seconds that a run has for saving itself, once it is asked to end.
GRACE = 30.0


class Executor(Protocol):
    """Takes tasks one by one until there are none, and reports progress and outcomes.

    Once ``stopping`` says so, the tasks that are on save themselves and end.
    """

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None: ...


class Inline:
    """One task after the other, here."""

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        while not stopping() and (task := next_task()) is not None:
            from lit_byz.execution.task_run import compute  # for seconds, if there is any task

            outcome = compute(task, report)
            report(outcome)
            if outcome.status == "interrupted":
                return  # what stopped it stops all of us
