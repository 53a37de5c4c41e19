"""Names of processes, by which it is known later, and elsewhere, whether one is gone."""

import os
import platform
from pathlib import Path


def this_process() -> str:
    """What tells this process from any other, now and later, on this machine and elsewhere."""
    return "|".join([*_machine(), str(os.getpid()), _started(os.getpid())])


def _machine() -> tuple[str, str, str]:
    """This machine since it was started, and who sees the same process numbers on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = space = ""
    return platform.node(), boot, space


def _started(number: int) -> str:
    """When a process was started, as the kernel counts; empty if there is no such process."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def died_here(name: str) -> bool:
    """Whether a name is that of a process of this machine that is known to be gone."""
    parts = name.split("|")
    if len(parts) != 5 or not parts[1] or tuple(parts[:3]) != _machine():
        return False
    return _started(int(parts[3])) != parts[4]
