"""What a server may be given: tensors, NumPy arrays, lists of vectors; and giving back the same."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

Restore = Callable[[torch.Tensor], Any]


def as_rows(owner: object, x: Any) -> tuple[torch.Tensor, Restore, Restore]:
    """The vectors of ``x`` as a tensor (..., n, d), and how to give back one vector or all rows.

    Half-precision tensors are computed with in float32. Nothing is ever written to ``x``.
    """
    name = type(owner).__name__
    rows, give_vector, give_rows = _unpack(name, x)
    if not rows.dtype.is_floating_point:
        raise TypeError(
            f"{name}: x must hold floating-point numbers, got {rows.dtype}; convert it first, "
            "for example with x.float()"
        )
    if rows.dim() < 2:
        raise ValueError(f"{name}: x must have shape (..., n, d), got {tuple(rows.shape)}")
    if 0 in rows.shape:
        raise ValueError(f"{name}: x must not be empty, got shape {tuple(rows.shape)}")
    original = rows.dtype
    rows = rows.detach()
    if original not in (torch.float32, torch.float64):
        rows = rows.float()
    return rows, lambda y: give_vector(y.to(original)), lambda y: give_rows(y.to(original))


def _unpack(name: str, x: Any) -> tuple[torch.Tensor, Restore, Restore]:
    if isinstance(x, torch.Tensor):
        return x, _same, _same
    if isinstance(x, np.ndarray):
        return _from_numpy(name, x), _to_numpy, _to_numpy
    if isinstance(x, Sequence) and not isinstance(x, str):
        if not x:
            raise ValueError(f"{name}: x must not be empty, got {x!r}")
        shapes = {tuple(getattr(row, "shape", ())) for row in x}
        if len(shapes) > 1:
            raise ValueError(f"{name}: the vectors in x must have one shape, got {sorted(shapes)}")
        if all(isinstance(row, torch.Tensor) for row in x):
            return torch.stack(list(x)), _same, lambda y: list(y.unbind(-2))
        if all(isinstance(row, np.ndarray) for row in x):
            stacked = _from_numpy(name, np.stack(list(x)))
            return stacked, _to_numpy, lambda y: [_to_numpy(row) for row in y.unbind(-2)]
    raise TypeError(
        f"{name}: x must be a tensor, a NumPy array or a list of vectors of one kind, "
        f"got {type(x).__name__}"
    )


def _from_numpy(name: str, x: np.ndarray) -> torch.Tensor:
    if x.dtype.kind not in "fiub":
        raise TypeError(f"{name}: x must hold floating-point numbers, got {x.dtype}")
    # A read-only array must not become a tensor that could write to it.
    native = x.astype(x.dtype.newbyteorder("="), copy=not x.flags.writeable)
    return torch.from_numpy(np.ascontiguousarray(native))


def _to_numpy(y: torch.Tensor) -> np.ndarray:
    return y.numpy()


def _same(y: torch.Tensor) -> torch.Tensor:
    return y
