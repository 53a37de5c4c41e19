"""Properties of aggregation rules, as asserts that any rule can be put through."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tests.robust._reference import Answer, Between

Aggregate = Callable[[Tensor], Tensor]


def relative_error(output: object, answers: Sequence[Answer], x: np.ndarray) -> float:
    """Distance to the nearest allowed answer, relative to it.

    An answer that is next to nothing beside the inputs is compared on their scale: no float32
    computation could do better.
    """
    scale = 1e-2 * np.median(np.linalg.norm(x, axis=1))
    found = np.asarray(output, dtype=np.float64)
    errors = []
    for answer in answers:
        nearest = np.clip(found, answer.low, answer.high) if isinstance(answer, Between) else answer
        size = max(np.linalg.norm(nearest), scale, 1e-300)
        errors.append(float(np.linalg.norm(found - nearest) / size))
    return min(errors)


def assert_close(output: Tensor, expected: Tensor, size: float, tolerance: float) -> None:
    error = float((output - expected).norm())
    assert error <= tolerance * size, f"{error:.3g} > {tolerance:g} · {size:.3g}"


def size_of(x: Tensor) -> float:
    return float(x.norm(dim=-1).max())


def assert_permutation_invariant(aggregate: Aggregate, x: Tensor, tolerance: float = 1e-9) -> None:
    shuffled = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    assert_close(aggregate(x[shuffled]), aggregate(x), size_of(x), tolerance)


def assert_scale_equivariant(
    aggregate: Aggregate, scaled: Aggregate, x: Tensor, factor: float, tolerance: float = 1e-9
) -> None:
    """``scaled`` is the same rule with its lengths, if it has any, multiplied by the factor."""
    assert_close(scaled(factor * x), factor * aggregate(x), factor * size_of(x), tolerance)


def assert_translation_equivariant(
    aggregate: Aggregate, x: Tensor, tolerance: float = 1e-9
) -> None:
    shift = torch.linspace(-3, 5, x.shape[1], dtype=x.dtype)
    assert_close(aggregate(x + shift), aggregate(x) + shift, size_of(x + shift), tolerance)


def assert_rotation_equivariant(aggregate: Aggregate, x: Tensor, tolerance: float = 1e-9) -> None:
    generator = torch.Generator().manual_seed(2)
    square = torch.randn(x.shape[1], x.shape[1], generator=generator, dtype=x.dtype)
    rotation = torch.linalg.qr(square).Q
    assert_close(aggregate(x @ rotation), aggregate(x) @ rotation, size_of(x), tolerance)


def assert_coordinatewise(aggregate: Aggregate, x: Tensor) -> None:
    """Each coordinate of the output comes from that coordinate of the inputs alone."""
    torch.testing.assert_close(aggregate(x[:, ::2]), aggregate(x)[::2], rtol=1e-12, atol=0)


def assert_input_untouched(aggregate: Aggregate, x: Tensor) -> None:
    kept = x.clone()
    aggregate(x)
    assert torch.equal(x, kept)


def assert_inside_box(aggregate: Aggregate, x: Tensor) -> None:
    """No coordinate leaves the range of the inputs (and 0, where iterations start)."""
    output, slack = aggregate(x), 1e-9 * size_of(x)
    assert (output <= x.amax(dim=0).clamp(min=0) + slack).all()
    assert (output >= x.amin(dim=0).clamp(max=0) - slack).all()


def assert_keeps_kind(aggregate: Callable, x: np.ndarray, output_shape: tuple[int, ...]) -> None:
    """Tensor in, tensor out; array in, array out; list of vectors in, their kind out."""
    tensor = torch.from_numpy(x)
    expected = aggregate(tensor)
    assert isinstance(expected, Tensor)
    assert expected.dtype == tensor.dtype
    assert tuple(expected.shape) == output_shape
    for given, kind in ((x, np.ndarray), (list(x), np.ndarray), (list(tensor), Tensor)):
        output = aggregate(given)
        assert isinstance(output, kind), (type(given), type(output))
        assert np.array_equal(np.asarray(output), expected.numpy())
        assert str(output.dtype).removeprefix("torch.") == str(x.dtype)
