"""Processes that outlive the command which started them, found again later and ended.

A number alone says little: after a crash it may be another's. So a process is known by its number,
the moment it began and the boot of the machine; those below it by their session, which is its own.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lit_byz.errors import BadRequest, RunFailed

PROC = Path("/proc")
# What all that belongs together has in its environment.
MARK = "LIT_BYZ_CLUSTER"
PAUSE = 0.1
# Seconds within which a process has its new program, whatever else the machine does.
EXCHANGE = 2.0


@dataclass(frozen=True)
class Started:
    """A process that leads a session of its own."""

    pid: int
    begin: int
    """In ticks since the machine was booted."""
    boot: str
    mark: str

    @property
    def alive(self) -> bool:
        """Whether this very process is there; one that has its number by now is not it."""
        stat = _stat(self.pid) if self.boot == boot() else None
        return stat is not None and not stat.ended and stat.begin == self.begin

    def members(self) -> list[int]:
        """It and whatever it started that is still there.

        Where the first of a session has gone, its number may be another session's: then only
        those count that carry the mark.
        """
        if self.boot != boot():
            return []
        found = [pid for pid, s in _every().items() if s.session == self.pid and not s.ended]
        return found if self.alive else [pid for pid in found if self._marked(pid)]

    def _marked(self, pid: int) -> bool:
        path, deadline = PROC / str(pid) / "environ", time.monotonic() + EXCHANGE
        try:
            # A process that goes from one program to another has none for a moment, which is long
            # on a machine with much to do.
            while not (variables := path.read_bytes()) and time.monotonic() < deadline:
                time.sleep(PAUSE)
        except OSError:
            return False
        return f"{MARK}={self.mark}".encode() in variables.split(b"\0")

    def end(self, how: signal.Signals = signal.SIGTERM, grace: float = 20.0) -> bool:
        """Ask it to end, and after ``grace`` seconds end all of it; whether anything was there.

        Raises ``RunFailed`` if something stays, which waits for a disk, say.
        """
        if not (first := self.members()):
            return False
        for pid in [self.pid] if self.alive else first:
            _send(pid, how)
        if not _wait(lambda: not self.members(), grace):
            for pid in self.members():
                _send(pid, signal.SIGKILL)
            if not _wait(lambda: not self.members(), grace):
                raise RunFailed(f"process {self.pid}, or one that it started, cannot be ended")
        return True

    def cpu_seconds(self) -> float:
        """What it and all below it have computed so far.

        By descent, not by session: PostgreSQL gives each of its processes a session of its own.
        """
        every = _every()
        below = {self.pid}
        while more := {p for p, stat in every.items() if stat.parent in below} - below:
            below |= more
        return sum(every[p].ticks for p in below & set(every)) / os.sysconf("SC_CLK_TCK")


def start(
    command: Sequence[str | Path],
    mark: str,
    log: Path,
    environment: Mapping[str, str],
    **more: Any,
) -> tuple[Started, "subprocess.Popen[bytes]"]:
    """Start a command; all it says goes to a file that only its owner reads."""
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment, MARK: mark},
            start_new_session=True,
            **more,
        )
    stat = _stat(process.pid)  # there even if it has ended: nobody has asked for its exit code
    assert stat is not None
    return Started(process.pid, stat.begin, boot(), mark), process


def boot() -> str:
    """Which boot of which machine this is."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise BadRequest("a cluster on one machine needs Linux, whose /proc it reads") from error


@dataclass(frozen=True)
class _Stat:
    ended: bool
    """Whether only its exit code is left, for whoever started it."""
    parent: int
    session: int
    ticks: int
    begin: int


def _stat(pid: int) -> _Stat | None:
    """What the system says of a process, if there is one."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # Behind the name, which may have anything in it: field 3 of proc(5) and those that follow.
    fields = text.rpartition(")")[2].split()
    ticks = sum(int(field) for field in fields[11:15])
    return _Stat(fields[0] == "Z", int(fields[1]), int(fields[3]), ticks, int(fields[19]))


def _every() -> dict[int, _Stat]:
    numbers = (int(path.name) for path in PROC.iterdir() if path.name.isdigit())
    return {pid: stat for pid in numbers if (stat := _stat(pid)) is not None}


def _send(pid: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True
