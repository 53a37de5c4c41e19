"""What users' clips, mixes and rules are asked, and a clear word where the answer is none.

Compiled code believes what it is told about shapes and limits, so nothing goes there unchecked.
"""

import inspect
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from lit_byz.registry import with_example
from lit_byz.robust._columns import Reduction
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._inputs import from_numpy

Shape = tuple[int, ...]


def vector_of(rule: object, x: torch.Tensor) -> torch.Tensor:
    """What ``rule.aggregate`` makes of x (n, d): a tensor (d,) of its precision.

    NumPy arrays and other floating-point precisions are brought to it.
    """
    found = _ask(rule, "aggregate", x=x)
    must = f"must return one vector, a tensor of shape ({x.shape[-1]},) for x of shape"
    must, shape = f"{must} {tuple(x.shape)}", tuple(x.shape[-1:])
    return _floats(rule, "aggregate", must, found, [shape], str(x.dtype)).to(x)


def threshold_of(clip: object, norms: torch.Tensor) -> torch.Tensor:
    """Where ``clip.threshold`` clips vectors of these norms (..., n): float64 (...).

    A plain number is the threshold of all. Dimensions in front are inputs that have nothing to do
    with each other, such as the factors that an attack tries: a tensor must not mix them.
    """
    found, shape = _ask(clip, "threshold", norms=norms), tuple(norms.shape[:-1])
    if _fits(found, shape):
        return found
    if isinstance(found, Real):
        return norms.new_full(shape, float(found))
    must = (
        f"must return a number, or a tensor of shape {shape} for norms of shape "
        f"{tuple(norms.shape)}: reduce over the last dimension, as norms.amax(-1) does"
    )
    return _small(clip, "threshold", must, found, [shape])


def matrix_of(mix: object, geometry: Geometry, step: int, rows: int) -> torch.Tensor:
    """How ``mix.matrix`` makes so many rows of n vectors: float64 (..., rows, n)."""
    found = _ask(mix, "matrix", geometry=geometry, step=step)
    batch, n = tuple(geometry.batch), geometry.n
    shapes = [(*batch, rows, n), (rows, n)] if batch else [(rows, n)]
    if any(_fits(found, shape) for shape in shapes):
        return found
    must = (
        f"must return a tensor of shape {' or '.join(map(str, shapes))}, rows_after(n) by n, "
        f"for n={n} vectors"
    )
    return _small(mix, "matrix", must, found, shapes)


def weights_of(rule: object, geometry: Geometry) -> torch.Tensor:
    """How ``rule.weights`` weighs n vectors: float64 (..., n)."""
    found, shape = _ask(rule, "weights", geometry=geometry), (*geometry.batch, geometry.n)
    if _fits(found, shape):
        return found
    must = f"must return a tensor of shape {shape}, which is (*geometry.batch, geometry.n)"
    return _small(rule, "weights", must, found, [shape])


def reduction_of(rule: object, n: int) -> Reduction:
    """How ``rule.reduction`` reduces n values."""
    found = _ask(rule, "reduction", n=n)
    is_one = isinstance(found, Reduction) and all(
        isinstance(limit, Integral) for limit in (found.begin, found.end, found.nearest)
    )
    if is_one and 0 <= found.begin < found.end <= n and 0 <= found.nearest <= n:
        return found
    must = "must return a Reduction of whole numbers, 0 <= begin < end <= n and 0 <= nearest <= n"
    got = found if isinstance(found, Reduction) else _kind(found)
    error = ValueError if is_one else TypeError
    raise _wrong(error, rule, "reduction", f"{must}, for n={n}, got {got}")


def _ask(owner: object, method: str, **arguments: Any) -> Any:
    """What ``owner.method`` returns for these arguments, given in this order."""
    asked = getattr(owner, method)
    try:
        return asked(*arguments.values())
    except TypeError:
        takes = inspect.signature(asked)
        try:
            takes.bind(*arguments.values())
        except TypeError:
            must = f"must take the arguments ({', '.join(arguments)}), got {takes}"
            raise _wrong(TypeError, owner, method, must) from None
        raise


def _wrong(error: type[Exception], owner: object, method: str, said: str) -> Exception:
    """An error of one line, with an example of what ``owner`` derives from as a note."""
    return with_example(error(f"{type(owner).__name__}.{method}: {said}"), type(owner))


def _fits(found: Any, shape: Shape) -> bool:
    """Whether ``found`` is what is wanted already, as it always is from this package's own."""
    return (
        isinstance(found, torch.Tensor)
        and found.shape == shape
        and found.dtype is torch.float64
        and found.is_cpu
        and not found.requires_grad
    )


def _small(
    owner: object, method: str, must: str, found: Any, shapes: Collection[Shape]
) -> torch.Tensor:
    """``found`` where all small matrices live: on the CPU in float64."""
    given = _floats(owner, method, must, found, shapes, "floating-point numbers")
    return given.to("cpu", torch.float64)


def _floats(
    owner: object, method: str, must: str, found: Any, shapes: Collection[Shape], numbers: str
) -> torch.Tensor:
    """``found`` as a floating-point tensor of one of these shapes."""
    found = from_numpy(found)
    if not isinstance(found, torch.Tensor):
        raise _wrong(TypeError, owner, method, f"{must}, got {_kind(found)}")
    if tuple(found.shape) not in shapes:
        raise _wrong(ValueError, owner, method, f"{must}, got shape {tuple(found.shape)}")
    if not found.dtype.is_floating_point:
        raise _wrong(TypeError, owner, method, f"{must}, of {numbers}, got {found.dtype}")
    return found.detach()


def _kind(found: Any) -> str:
    if found is None:
        return "None: is a return missing?"
    if isinstance(found, np.ndarray):
        return f"a NumPy array of {found.dtype}"
    return f"a {type(found).__name__}"
