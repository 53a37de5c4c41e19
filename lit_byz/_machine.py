"""The machine that a run was computed on, in words."""

import os
import platform
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """Processor, its widest vector instructions, cores of this process, and accelerators."""
    parts = [_processor(), f"{len(os.sched_getaffinity(0))} cores", platform.system()]
    import torch

    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name(0))
    return ", ".join(parts)


def _processor() -> str:
    name, flags = platform.machine(), ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() == "flags":
                flags = value
    except OSError:
        return platform.processor() or name
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else ""
    return f"{name} ({vectors})" if vectors else name
