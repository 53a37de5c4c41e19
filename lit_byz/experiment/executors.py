"""Where tasks are computed: in this process, in local processes, or on a Ray cluster."""

import contextlib
import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from lit_byz.errors import BadRequest, RunFailed
from lit_byz.experiment._preload import MAIN
from lit_byz.experiment.ray_board import Board
from lit_byz.experiment.ray_worker import Place, compute_remotely
from lit_byz.experiment.tasks import Outcome, Progress, Task

NextTask = Callable[[], Task | None]
Report = Callable[[Progress | Outcome], None]
Stopping = Callable[[], bool]

# Seconds that a run has for saving itself, once it is asked to end.
GRACE = 30.0
THREADS = "OMP_NUM_THREADS"


class Executor(Protocol):
    """Takes tasks one by one until there are none, and reports progress and outcomes.

    Once ``stopping`` says so, the tasks that are on save themselves and end.
    """

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None: ...


class InProcess:
    """One task after the other, here."""

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        from lit_byz.experiment.task_run import compute

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
        forking.set_forkserver_preload(["lit_byz.experiment._preload"])
        # A folder for temporary files with a very long name leaves no room for the socket's.
        with contextlib.suppress(OSError), _environment({THREADS: "1", MAIN: str(os.getpid())}):
            forkserver.ensure_running()
            self._context = forking

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        self.get_ready()
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
                self._listen(report)
        except KeyboardInterrupt:
            for child in self._children:
                child.process.kill()
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

    def _start(self) -> _Child:
        assert self._context is not None
        ours, theirs = self._context.Pipe()
        # What a process is forked from may have started in another environment.
        place = list(sys.path), dict(os.environ)
        process = self._context.Process(target=_serve, args=(theirs, *place), daemon=True)
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


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Other variables for a while."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _serve(pipe: Connection, path: list[str], environment: dict[str, str]) -> None:
    """A local process: one thread, task after task, until the pipe closes."""
    # Ctrl-C reaches every process of a terminal; the main process decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update({**environment, THREADS: "1"})
    sys.path[:] = path
    import torch

    from lit_byz.experiment.task_run import compute

    def report(progress: Progress) -> None:
        # A main process that is gone is no failure of the run, which will be told to end.
        with contextlib.suppress(OSError):
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


def _end_with_parent() -> None:
    """Have this process save its run and end, once the main process has: by kill -9, say."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


@dataclass
class RayTasks:
    """Ray core tasks, one thread each, as many at once as the cluster has CPUs.

    ``address`` is a cluster's, or None for one on this machine with ``count`` CPUs (default: all).
    The nodes of a cluster share the working directory, and the store with it unless that is a
    server. A worker that is killed loses its task, which is reported as interrupted.
    """

    address: str | None = None
    count: int | None = None

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        with self._cluster() as ray:
            board = ray.remote(num_cpus=0)(Board).remote()
            remote = ray.remote(num_cpus=1, max_retries=0)(compute_remotely)
            place = Place.here()
            running: dict[Any, Task] = {}
            patience = math.inf
            try:
                while True:
                    slots = self.count or max(1, int(ray.cluster_resources().get("CPU", 1)))
                    while len(running) < slots and (task := next_task()) is not None:
                        running[remote.remote(task, place, board)] = task
                    if not running:
                        return
                    if stopping() and patience == math.inf:
                        board.stop.remote()
                        patience = time.monotonic() + GRACE
                    if time.monotonic() > patience:
                        _cancel(ray, running)
                    done, _ = ray.wait(list(running), num_returns=len(running), timeout=0.5)
                    for progress in _progress(ray, board):
                        report(progress)
                    for reference in done:
                        report(_outcome(ray, reference, running.pop(reference)))
            finally:
                _cancel(ray, running)

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[Any]:
        """Ray, connected; a connection that was there before stays."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of it
        try:
            import ray
        except ImportError as error:
            raise BadRequest("--executor ray needs Ray: pip install 'lit_byz[ray]'") from error
        if ray.is_initialized():
            yield ray
            return
        settings: dict[str, Any] = {"address": self.address}
        if self.address is None:
            # Tasks and outcomes are small: Ray's store of objects may be about as small as it can.
            settings = {"address": "local", "num_cpus": self.count, "include_dashboard": False}
            settings["object_store_memory"] = 100_000_000
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise RunFailed(f"Ray cluster {settings['address']}: {reason}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _progress(ray: Any, board: Any) -> list[Progress]:
    try:
        taken = ray.get(board.take.remote())
    except ray.exceptions.RayError:
        return []  # the board's process was killed; the tasks go on
    return [Progress(index, *state) for index, state in taken.items()]


def _outcome(ray: Any, reference: Any, task: Task) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayError as error:
        text = " ".join(str(getattr(error, "cause", None) or error).split())[:500]
        return Outcome(task.index, "interrupted", error=text)
    return outcome


def _cancel(ray: Any, running: dict[Any, Task]) -> None:
    for reference in running:
        ray.cancel(reference, force=True)
