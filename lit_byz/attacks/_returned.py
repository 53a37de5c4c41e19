"""What users' attacks return, and a clear word where it is not what they should."""

from collections.abc import Collection
from typing import Any

import torch

from lit_byz.robust.vectors import from_numpy


def floats(must: str, found: Any, shapes: Collection[tuple[int, ...]]) -> torch.Tensor:
    """``found`` as a floating-point tensor of one of these shapes, which ``must`` asks for."""
    tensor = from_numpy(found)
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{must}, got {kind_of(found)}")
    if tuple(tensor.shape) not in shapes or not tensor.dtype.is_floating_point:
        raise ValueError(f"{must}, got {tensor.dtype} of {tuple(tensor.shape)}")
    return tensor


def kind_of(found: Any) -> str:
    """What something is, in a message that ends in "got …"."""
    return "None: is a return missing?" if found is None else f"a {type(found).__name__}"
