"""Where tasks are computed: in this process, in local processes, or on a Ray cluster."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from lit_byz.errors import BadRequest
from lit_byz.experiment.tasks import Outcome, Progress, Task, compute

NextTask = Callable[[], Task | None]
Report = Callable[[Progress | Outcome], None]
Stopping = Callable[[], bool]


class Executor(Protocol):
    """Takes tasks one by one until there are none, and reports progress and outcomes.

    Once ``stopping`` says so, the tasks that are on save themselves and end.
    """

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None: ...


class InProcess:
    """One task after the other, here."""

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        while not stopping() and (task := next_task()) is not None:
            outcome = compute(task, report)
            report(outcome)
            if outcome.status == "interrupted":
                return  # the signal was for all of us


@dataclass
class _Child:
    process: BaseProcess
    pipe: Connection
    task: Task | None = None
    asked: bool = False  # to end


@dataclass
class LocalProcesses:
    """So many processes, one thread each, that take tasks as they become free.

    A process that is killed loses its task, which is reported as interrupted; another takes its
    place.
    """

    count: int
    _children: list[_Child] = field(default_factory=list)

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        try:
            while True:
                idle = [child for child in self._children if child.task is None]
                while len(idle) > 0 or len(self._children) < self.count:
                    task = next_task()
                    if task is None:
                        break
                    child = idle.pop() if idle else self._start()
                    child.task = task
                    child.pipe.send(task)
                if not any(child.task for child in self._children):
                    return
                if stopping():
                    self._terminate()
                self._listen(report)
        except KeyboardInterrupt:
            for child in self._children:
                child.process.kill()
            raise
        finally:
            self.stop()

    def stop(self) -> None:
        """End the processes: idle ones at once, busy ones after they have saved their run."""
        self._terminate()
        for child in self._children:
            child.pipe.close()
        for child in self._children:
            child.process.join(30)
            if child.process.is_alive():
                child.process.kill()
        self._children.clear()

    def _terminate(self) -> None:
        """Ask the busy processes to end: a run saves itself first, one not begun has nothing to."""
        for child in self._children:
            if child.task is not None and not child.asked:
                child.asked = True
                child.process.terminate()

    def _start(self) -> _Child:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, list(sys.path)), daemon=True)
        process.start()
        theirs.close()
        child = _Child(process, ours)
        self._children.append(child)
        return child

    def _listen(self, report: Report) -> None:
        ready = wait([child.pipe for child in self._children], timeout=1.0)
        for child in [child for child in self._children if child.pipe in ready]:
            try:
                message = child.pipe.recv()
            except (EOFError, OSError):
                self._children.remove(child)
                child.process.join(5)
                if child.task is not None:
                    code = child.process.exitcode
                    text = f"its process ended with code {code}"
                    report(Outcome(child.task.index, "interrupted", error=text))
                continue
            if isinstance(message, Outcome):
                child.task = None
            report(message)


def _serve(pipe: Connection, path: list[str]) -> None:
    """A local process: one thread, task after task, until the pipe closes."""
    # Ctrl-C reaches every process of a terminal; the main process decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path[:] = path
    import torch

    torch.set_num_threads(1)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        outcome = compute(task, pipe.send)
        try:
            pipe.send(outcome)
        except (BrokenPipeError, OSError):
            return


@dataclass
class RayTasks:
    """Ray core tasks, as many at once as the cluster has CPUs; the store must be reachable there.

    ``address`` is a cluster's, or None for one on this machine.
    """

    address: str | None = None

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        try:
            import ray
        except ImportError as error:
            raise BadRequest("--executor ray needs Ray: pip install 'lit_byz[ray]'") from error
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        remote: Any = ray.remote(num_cpus=1, max_retries=0)(_compute_remotely)
        running: dict[Any, Task] = {}
        slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        while True:
            while len(running) < slots and (task := next_task()) is not None:
                running[remote.remote(task)] = task
            if not running:
                return
            if stopping():
                for reference in running:
                    ray.cancel(reference)
            done, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for reference in done:
                task = running.pop(reference)
                try:
                    report(ray.get(reference))
                except ray.exceptions.RayError as error:
                    text = " ".join(str(error).split())[:500]
                    report(Outcome(task.index, "interrupted", error=text))


def _compute_remotely(task: Task) -> Outcome:
    import torch

    torch.set_num_threads(1)
    return compute(task, lambda progress: None)
