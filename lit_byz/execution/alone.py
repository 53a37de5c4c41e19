"""A run in somebody's program: what torch is set to there is not what it computes with.

A result stands for its settings and its code. What else could change it within a process (torch's
default precision, autocast, gradients that are off) is for a while what it is in a new process.
"""

import contextlib
from collections.abc import Iterator

import torch

from lit_byz._streams import ALONE


@contextlib.contextmanager
def by_itself() -> Iterator[None]:
    """Compute as a process of its own would; afterwards all is as the caller had it.

    Torch's global random numbers, which every step starts anew, belong to the whole process: calls
    from several threads come one after another.
    """
    with ALONE, contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        for device in _devices():
            stack.enter_context(torch.autocast(device, enabled=False))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
        yield


def _devices() -> list[str]:
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ["cpu"] if found is None else ["cpu", found.type]
