"""The machine that a run was computed on, in words."""

import os
import platform
from functools import cache

from lit_byz._instructions import KNOWN, available, chosen
from lit_byz._processor import processor


@cache
def machine() -> str:
    """Processor, the vector instructions that are used, cores of this process, and accelerators."""
    parts = [_processor(), f"{len(os.sched_getaffinity(0))} cores", platform.system()]
    import torch

    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name(0))
    return ", ".join(parts)


def _processor() -> str:
    name = processor()
    used, has = (KNOWN[known].title for known in (chosen(), available()[0]))
    if used == has:
        return f"{name} ({has})" if has else name
    return f"{name} ({used or 'plain'} of {has})"
