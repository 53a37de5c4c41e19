"""The compiled passes over a basis, and for which tensors they are used."""

from typing import Any

import torch

from lit_byz._native import SUFFIX, function, library

WORTH_A_THREAD = 1 << 16


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


def call(name: str, x: torch.Tensor, *arguments: Any, effort: int = 1) -> int | None:
    """Call ``name`` for the rows of ``x``, the thread count last; None where it returns nothing.

    ``effort`` says how many times as long as a look at it every number takes.
    """
    rows, columns = x.shape
    # Starting threads costs as much as a pass over this many numbers.
    threads = torch.get_num_threads() if rows * columns * effort >= WORTH_A_THREAD else 1
    found: int | None = function(name, x.dtype)(x, x.stride(0), rows, columns, *arguments, threads)
    return found
