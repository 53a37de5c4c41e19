"""What a user's rule may return, and a clear word where it returns something else."""

from typing import Any

import numpy as np
import torch


def one_vector(rule: object, found: Any, rows: torch.Tensor) -> torch.Tensor:
    """What ``rule.aggregate`` returned for rows (n, d), as a tensor (d,) of their precision.

    NumPy arrays and other floating-point precisions are brought to it.
    """
    what = f"{type(rule).__name__}.aggregate"
    must = f"must return one vector, a tensor of shape ({rows.shape[-1]},) for x of shape"
    if isinstance(found, np.ndarray):
        found = torch.from_numpy(found) if found.dtype.kind in "fiub" else found
    if not isinstance(found, torch.Tensor):
        raise TypeError(f"{what}: {must} {tuple(rows.shape)}, got {_kind(found)}")
    if tuple(found.shape) != tuple(rows.shape[-1:]):
        raise ValueError(f"{what}: {must} {tuple(rows.shape)}, got shape {tuple(found.shape)}")
    if not found.dtype.is_floating_point:
        raise TypeError(f"{what}: {must} {tuple(rows.shape)}, of {rows.dtype}, got {found.dtype}")
    return found.detach().to(rows)


def _kind(found: Any) -> str:
    if found is None:
        return "None: is a return missing?"
    if isinstance(found, np.ndarray):
        return f"a NumPy array of {found.dtype}"
    return f"a {type(found).__name__}"
