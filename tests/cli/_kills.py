"""Starting a command, killing it or one of its processes, and looking at what is left."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.cli._sweeps import rows


@contextlib.contextmanager
def started(command: Sequence[str], **more: Any) -> Iterator["subprocess.Popen[str]"]:
    """A command in a session of its own, of which nothing is left, whatever a test finds."""
    with subprocess.Popen(command, text=True, start_new_session=True, **more) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended, with all of its own
                os.killpg(process.pid, signal.SIGKILL)


def kill(process: "subprocess.Popen[Any]", victim: str, chance: random.Random) -> bool:
    """Kill -9 a sweep or one of its processes; whether there was one to kill."""
    if process.poll() is not None:
        return False
    if victim == "group":
        os.killpg(process.pid, signal.SIGKILL)
        return True
    found = [process.pid] if victim == "main" else _forked(process.pid, victim == "origin")
    if not found:
        return False
    os.kill(chance.choice(found), signal.SIGKILL)
    return True


def finished_halves(folder: Path) -> list[tuple[Any, ...]]:
    """Runs that are shown as finished and do not have all of their steps, or no maximum."""
    if not (folder / "mlruns" / "mlflow.db").exists():
        return []
    return rows(
        folder,
        "select r.run_uuid from runs r join tags k on k.run_uuid = r.run_uuid "
        "and k.key = 'lit_byz.kind' and k.value = 'run' where r.status = 'FINISHED' and ("
        "(select count(*) from metrics m where m.run_uuid = r.run_uuid and m.key = 'train/loss') "
        "<> 40 or not exists (select 1 from latest_metrics l where l.run_uuid = r.run_uuid "
        "and l.key = 'test/max_accuracy'))",
    )


def _living(group: int) -> dict[int, int]:
    """The processes of a group and their parents, those that are only waited for left out."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, of = path.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                found[int(path.parent.name)] = int(parent)
    return found


def deserted(group: int) -> bool:
    return not _living(group)


def _forked(main: int, origin: bool) -> list[int]:
    """The processes that compute for a sweep, or the one that they are forked from."""
    found = []
    for number, parent in _living(main).items():
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            if b"forkserver" in command and (parent == main) == origin:
                found.append(number)
    return found


def wait_until(what: str, condition: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
