"""Local processes that compute tasks."""

import contextlib
import math
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from types import FrameType, ModuleType

from lit_byz.execution._preload import MAIN
from lit_byz.execution.executor import GRACE, NextTask, Report, Stopping
from lit_byz.execution.surroundings import environment
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome

THREADS = "OMP_NUM_THREADS"
# Without it Python would look for modules in the working directory first, before installed ones.
SAFE_PATH = "PYTHONSAFEPATH"


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
    _context: ForkServerContext | SpawnContext | None = None
    _children: list[_Child] = field(default_factory=list)

    def get_ready(self) -> None:
        """Begin to import what tasks need, beside whatever this process does meanwhile.

        Where it is safe, one process imports and is then forked for every new process.
        """
        if self._context is not None:
            return
        self._context = multiprocessing.get_context("spawn")
        if sys.platform != "linux":
            return
        forking = multiprocessing.get_context("forkserver")
        forking.set_forkserver_preload(["lit_byz.execution._preload"])
        # A folder for temporary files with a very long name leaves no room for the socket's.
        with (
            contextlib.suppress(OSError),
            environment({THREADS: "1", MAIN: str(os.getpid()), SAFE_PATH: "1"}),
            _without_main(),
        ):
            forkserver.ensure_running()
            self._context = forking

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        patience = math.inf
        try:
            while True:
                idle = [child for child in self._children if child.task is None]
                while len(idle) > 0 or len(self._children) < self.count:
                    task = next_task()
                    if task is None:
                        break
                    self._give(task, idle)
                if not any(child.task for child in self._children):
                    return
                if stopping():
                    self._terminate()
                    patience = min(patience, time.monotonic() + GRACE)
                if time.monotonic() > patience:
                    self._kill()
                self._listen(report)
        except KeyboardInterrupt:
            self._kill()
            raise
        finally:
            self.stop()

    def _give(self, task: Task, idle: list[_Child]) -> None:
        """Send a task to an idle process, or to a new one."""
        while True:
            child = idle.pop() if idle else self._start()
            try:
                child.pipe.send(task)
            except OSError:  # it was killed while it had nothing to do
                self._children.remove(child)
                continue
            child.task = task
            return

    def stop(self) -> None:
        """End the processes: idle ones at once, busy ones after they have saved their run."""
        self._terminate()
        for child in self._children:
            child.pipe.close()
        for child in self._children:
            child.process.join(GRACE)
            if child.process.is_alive():
                child.process.kill()
                child.process.join()
        self._children.clear()

    def _terminate(self) -> None:
        """Ask the busy processes to end: a run saves itself first, one not begun has nothing to."""
        for child in self._children:
            if child.task is not None and not child.asked:
                child.asked = True
                child.process.terminate()

    def _kill(self) -> None:
        for child in self._children:
            child.process.kill()

    def _start(self) -> _Child:
        self.get_ready()
        assert self._context is not None
        ours, theirs = self._context.Pipe()
        # What a process is forked from may have started in another environment.
        place = list(sys.path), dict(os.environ)
        process = self._context.Process(target=_serve, args=(theirs, *place), daemon=True)
        with _without_main():
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
                    report(Outcome(child.task.identity, "interrupted", error=text))
                continue
            if isinstance(message, Outcome):
                child.task = None
            report(message)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not run the main program's script again.

    They would, to have what it defines. Nothing here needs that, and a user's script that calls
    ``lit_byz.sweep`` without asking for its ``__name__`` would start a sweep in every process.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _serve(pipe: Connection, path: list[str], environment: dict[str, str]) -> None:
    """A local process: one thread, task after task, until the pipe closes."""
    # Ctrl-C reaches every process of a terminal; the main process decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)  # while no run listens: one that is made is marked
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout = sys.stderr  # what a run prints is no part of the command's answer
    os.environ.clear()
    os.environ.update({**environment, THREADS: "1"})
    sys.path[:] = path
    import torch

    from lit_byz.execution.task_run import compute

    def report(progress: Progress) -> None:
        # A main process that is gone is no failure of the run, which will be told to end. One that
        # waits for a store does not read: what it can do without is not worth waiting for it.
        with contextlib.suppress(OSError):
            if progress.note or select.select([], [pipe], [], 0)[1]:
                pipe.send(progress)

    torch.set_num_threads(1)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        outcome = compute(task, report)
        try:
            pipe.send(outcome)
        except OSError:
            return


def _leave(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # it comes twice where it was sent to all
    sys.exit(128 + number)


def _end_with_parent() -> None:
    """Have this process save its run and end, once the main process has: by kill -9, say."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)
