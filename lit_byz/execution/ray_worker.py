"""A task as a worker of a Ray cluster computes it."""

import contextlib
import os
import platform
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome


@dataclass(frozen=True)
class Place:
    """Where the main process is: tasks see files, modules and settings as it does."""

    folder: str
    path: list[str]
    command: str
    environment: dict[str, str]

    @classmethod
    def here(cls) -> Self:
        ours = {k: v for k, v in os.environ.items() if k.startswith(("LIT_BYZ_", "MLFLOW_"))}
        return cls(str(Path.cwd()), list(sys.path), sys.argv[0], ours)

    def enter(self) -> None:
        os.chdir(self.folder)
        os.environ.update(self.environment)
        sys.argv[:1] = [self.command]
        sys.path += [entry for entry in self.path if entry not in sys.path]


def compute_remotely(task: Task, place: Place, board: Any) -> Outcome:
    """Compute a task here, with one thread, as if the main process did."""
    import ray
    import torch

    from lit_byz.execution.task_run import compute

    def report(progress: Progress) -> None:
        stopping = False
        with contextlib.suppress(ray.exceptions.RayError):  # a lost board is no failure of the run
            state = (progress.step, progress.steps, progress.max_accuracy)
            stopping = ray.get(board.note.remote(progress.identity, state))
        if stopping:
            signal.raise_signal(signal.SIGTERM)  # which the run hears, and saves itself

    try:
        place.enter()
    except OSError as error:
        text = f"node {platform.node()} does not share the working directory: {error}"
        return Outcome(task.identity, "failed", error=text)
    torch.set_num_threads(1)
    if ray.get(board.stopping.remote()):
        return Outcome(task.identity, "interrupted")
    return compute(task, report)
