"""The compiled passes over a basis, and for which tensors they are used."""

import ctypes
from typing import Any

import torch

from lit_byz._native import SUFFIX, function, library, pointer

WORTH_A_THREAD = 1 << 16

__all__ = ["call", "pointer", "serves"]


def serves(x: torch.Tensor) -> bool:
    """Whether the compiled passes can read ``x``: (m, d) on the CPU with contiguous rows."""
    return (
        x.device.type == "cpu"
        and x.dtype in SUFFIX
        and x.dim() == 2
        and (x.stride(1) == 1 or x.shape[1] <= 1)
        and x.numel() > 0
        and library() is not None
    )


def call(name: str, x: torch.Tensor, *arguments: Any) -> int:
    """Call ``name`` for the rows of ``x``; integers become 64-bit, the thread count goes last."""
    kinds = {int: ctypes.c_int64, float: ctypes.c_double}
    converted = [kinds[type(a)](a) if type(a) in kinds else a for a in arguments]
    rows, columns = x.shape
    shape = [ctypes.c_int64(x.stride(0)), ctypes.c_int64(rows), ctypes.c_int64(columns)]
    # Starting threads costs as much as a pass over this many numbers.
    threads = ctypes.c_int(torch.get_num_threads() if x.numel() >= WORTH_A_THREAD else 1)
    return int(function(name, x.dtype)(pointer(x), *shape, *converted, threads) or 0)
