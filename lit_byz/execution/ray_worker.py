"""A task as a worker of a Ray cluster computes it."""

import contextlib
import os
import platform
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from lit_byz._cache import spare_folder
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome

# Seconds between two reports of one run: all go through one process.
REPORT_EVERY = 2.0
# Settings that name places of the main process's machine.
PLACES = ("LIT_BYZ_DATA", "LIT_BYZ_CACHE")


@dataclass(frozen=True)
class Place:
    """Where the main process is: tasks see files, modules and settings as it does.

    Where the nodes share no folder with it, ``folder`` is None: a task works in a folder of its own
    node, into which the user's modules (``sources``, by file name) are written.
    """

    folder: str | None
    path: list[str]
    command: str
    environment: dict[str, str]
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def here(cls, *, shared: bool = True) -> Self:
        ours = {k: v for k, v in os.environ.items() if k.startswith(("LIT_BYZ_", "MLFLOW_"))}
        if shared:
            return cls(str(Path.cwd()), list(sys.path), sys.argv[0], ours)
        ours = {k: v for k, v in ours.items() if k not in PLACES}
        return cls(None, [], sys.argv[0], ours, _users_modules())

    def enter(self, node: str) -> None:
        folder = Path(self.folder) if self.folder is not None else self._furnish(node)
        os.chdir(folder)
        os.environ.update(self.environment)
        sys.argv[:1] = [self.command]
        here = [*self.path, str(folder)]
        sys.path += [entry for entry in here if entry not in sys.path]

    def _furnish(self, node: str) -> Path:
        """The node's own folder, with the user's modules in it."""
        folder = spare_folder("nodes", node)  # nobody else's: modules are imported from it
        for name, text in self.sources.items():
            path = folder / name
            if not path.exists() or path.read_text() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                new = path.with_suffix(f".{os.getpid()}")
                new.write_text(text)
                new.replace(path)
        return folder


def _users_modules() -> dict[str, str]:
    """The source of the modules that were imported from the working directory."""
    here = Path.cwd()
    found = {}
    for module in list(sys.modules.values()):
        path = Path(getattr(module, "__file__", None) or "/")
        if path.suffix == ".py" and path.is_relative_to(here) and _is_plain(path, here):
            found[str(path.relative_to(here))] = path.read_text()
    return found


def _is_plain(path: Path, here: Path) -> bool:
    """Whether a file is a module of the user's, not of this package or of an environment here."""
    first = path.relative_to(here).parts[0]
    return first not in ("lit_byz", "pipelines", "tests") and "site-packages" not in path.parts


def compute_remotely(task: Task, place: Place, board: Any) -> Outcome:
    """Compute a task here, with the threads that it asked for, as if the main process did."""
    import ray
    import torch

    from lit_byz.execution.task_run import compute

    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if not progress.note and time.monotonic() - last < REPORT_EVERY:
            return
        last = time.monotonic()
        stopping = False
        with contextlib.suppress(ray.exceptions.RayError):  # a lost board is no failure of the run
            state = (progress.step, progress.steps, progress.max_accuracy)
            stopping = ray.get(board.note.remote(progress.identity, state, progress.note))
        if stopping:
            signal.raise_signal(signal.SIGTERM)  # which the run hears, and saves itself

    try:
        place.enter(ray.get_runtime_context().get_node_id())
    except OSError as error:
        what = "has no folder to work in" if place.folder is None else "does not share the folder"
        text = f"node {platform.node()} {what}: {error}"
        return Outcome(task.identity, "failed", error=text)
    torch.set_num_threads(task.config["resources"]["cpus"])
    with contextlib.suppress(ray.exceptions.RayError):
        if ray.get(board.stopping.remote()):
            return Outcome(task.identity, "interrupted")
    return compute(task, report)
