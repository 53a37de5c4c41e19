"""What a server may be given: tensors, NumPy arrays, lists of vectors; and giving back the same."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch

from lit_byz._checks import owner_name

Restore = Callable[[torch.Tensor], Any]


def as_rows(owner: object, x: Any, name: str = "x") -> tuple[torch.Tensor, Restore, Restore]:
    """The vectors of ``x`` as a tensor (..., n, d), and how to give back one vector or all rows.

    ``name`` is what the owner calls them. Half-precision tensors are computed with in float32, and
    Python's numbers in float64. Nothing is ever written to ``x``.
    """
    where = f"{owner_name(owner)}: {name}"
    rows, give_vector, give_rows = _unpack(where, x)
    if not rows.dtype.is_floating_point:
        raise TypeError(
            f"{where} must hold floating-point numbers, got {rows.dtype}; convert it first, "
            f"for example with {name}.float()"
        )
    if rows.dim() < 2:
        raise ValueError(f"{where} must have shape (..., n, d), got {tuple(rows.shape)}")
    if 0 in rows.shape:
        raise ValueError(f"{where} must not be empty, got shape {tuple(rows.shape)}")
    original = rows.dtype
    rows = rows.detach()
    if original not in (torch.float32, torch.float64):
        rows = rows.float()
    return rows, lambda y: give_vector(y.to(original)), lambda y: give_rows(y.to(original))


def as_tensor(owner: object, x: Any, name: str) -> torch.Tensor:
    """``x``, which the owner calls ``name``, as a tensor of any shape and precision."""
    return _unpack(f"{owner_name(owner)}: {name}", x)[0].detach()


def from_numpy(x: Any) -> Any:
    """An array of numbers that torch has, as a tensor; anything else as it is.

    A read-only array does not become a tensor that could write to it.
    """
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
        return x
    native = x.astype(x.dtype.newbyteorder("="), copy=not x.flags.writeable)
    return torch.from_numpy(np.asarray(native, order="C"))


def _unpack(where: str, x: Any) -> tuple[torch.Tensor, Restore, Restore]:
    if isinstance(x, torch.Tensor):
        return x, _same, _same
    if isinstance(x, np.ndarray):
        return _from_array(where, x), _to_numpy, _to_numpy
    if isinstance(x, Sequence) and not isinstance(x, str | bytes):
        return _unpack_list(where, x)
    raise _not_vectors(where, type(x).__name__)


def _unpack_list(where: str, x: Sequence[Any]) -> tuple[torch.Tensor, Restore, Restore]:
    if not x:
        raise ValueError(f"{where} must not be empty, got {x!r}")
    if all(isinstance(row, torch.Tensor) for row in x):
        _check_vectors(where, {tuple(row.shape) for row in x})
        return torch.stack(list(x)), _same, lambda y: list(y.unbind(-2))
    if all(isinstance(row, np.ndarray) for row in x):
        _check_vectors(where, {row.shape for row in x})
        stacked = _from_array(where, np.stack(list(x)))
        return stacked, _to_numpy, lambda y: [_to_numpy(row) for row in y.unbind(-2)]
    if all(isinstance(row, list | tuple) and all(map(_is_number, row)) for row in x):
        _check_vectors(where, {(len(row),) for row in x})
        numbers = [[float(number) for number in row] for row in x]
        return torch.tensor(numbers, dtype=torch.float64), _to_list, _to_list
    kinds = " and ".join(sorted({type(row).__name__ for row in x}))
    raise _not_vectors(where, f"a {type(x).__name__} of {kinds}")


def _check_vectors(where: str, shapes: set[tuple[int, ...]]) -> None:
    """A list has one vector of each worker: one of matrices would look like a batch of inputs."""
    if len(shapes) > 1:
        raise ValueError(f"{where} must hold vectors of one shape, got {sorted(shapes)}")
    (shape,) = shapes
    if len(shape) != 1:
        raise ValueError(
            f"{where} as a list must hold vectors of one dimension, got shape {shape}: flatten "
            "each worker's vector first"
        )


def _not_vectors(where: str, got: str) -> TypeError:
    return TypeError(
        f"{where} must be a tensor, a NumPy array or a list of vectors of one kind (tensors, "
        f"arrays or lists of numbers), got {got}"
    )


def _from_array(where: str, x: np.ndarray) -> torch.Tensor:
    found = from_numpy(x)
    if not isinstance(found, torch.Tensor):
        raise TypeError(
            f"{where} must hold floating-point numbers of at most 64 bits, got {x.dtype}"
        )
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _to_numpy(y: torch.Tensor) -> np.ndarray:
    return y.numpy()


def _to_list(y: torch.Tensor) -> Any:
    return y.tolist()


def _same(y: torch.Tensor) -> torch.Tensor:
    return y
