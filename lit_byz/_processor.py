"""What the system says about its processor."""

import platform
from functools import cache
from pathlib import Path


@cache
def cpuinfo(*keys: str) -> str:
    """What Linux says of its first processor under one of these names; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    told = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in told if name.strip() in keys), "")


def processor() -> str:
    """Its name, or at least its kind."""
    return cpuinfo("model name") or platform.processor() or platform.machine()
