"""MoNNA trusts one vector: what that gives, and what it costs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.robust import NNM, MoNNA
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._inputs import FAMILIES, matrix


@st.composite
def trusted(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    """Vectors, f and a pivot."""
    n = draw(st.integers(3, 8))
    f, pivot = draw(st.integers(1, (n - 1) // 2)), draw(st.integers(0, n - 1))
    family, seed = draw(st.sampled_from(sorted(FAMILIES))), draw(st.integers(0, 1000))
    return matrix(family, n, f, draw(st.integers(1, 3)), np.float64, seed), f, pivot


@given(given=trusted())
def test_as_near_to_the_honest_mean_as_the_pivot_is_to_honest_vectors(given: tuple) -> None:
    """For each vector of S that is left out, one no farther from the pivot is taken: the error is
    at most 2f/(n − f) times the largest distance of the pivot to a vector of S. Holds for every S
    of n − f vectors with the pivot among them."""
    x, f, pivot = given
    n = len(x)
    output = MoNNA(f, pivot)(x)
    for S in reference.subsets(n, f):
        if pivot in S:
            reach = reference.norms(x[S] - x[pivot]).max()
            error = np.linalg.norm(output - x[S].mean(axis=0))
            assert error <= 2 * f / (n - f) * reach * (1 + 1e-9) + 1e-9 * reference.norms(x).max()


@given(given=trusted())
def test_order_matters_to_the_pivot_alone(given: tuple) -> None:
    x, f, pivot = given
    if len(reference.monna(x, f, pivot)) == 1:
        order = np.random.default_rng(0).permutation(len(x))
        moved = MoNNA(f, int(np.flatnonzero(order == pivot)[0]))(x[order])
        size = reference.norms(x).max()
        np.testing.assert_allclose(moved, MoNNA(f, pivot)(x), rtol=0, atol=1e-9 * size)


@each("family", FAMILIES)
def test_each_pivot_gives_its_row_of_nearest_neighbour_mixing(family: str) -> None:
    x = torch.from_numpy(matrix(family, 9, 3, 20, np.float64))
    rows = torch.stack([MoNNA(3, pivot)(x) for pivot in range(9)])
    torch.testing.assert_close(rows, NNM(3)(x), rtol=1e-9, atol=0)


@each("family", FAMILIES)
def test_pivots_against_the_reference(family: str, either_path: str) -> None:
    x = matrix(family, 11, 4, 20, np.float64)
    for pivot in (1, 5, 10):
        output = MoNNA(4, pivot)(x)
        answers = reference.monna(x, 4, pivot)
        errors = [np.linalg.norm(output - answer) for answer in answers]
        assert min(errors) < 1e-7 * np.linalg.norm(output), pivot


@each("far", [1e3, 1e9])
def test_a_pivot_that_lies_takes_the_output_along(far: float) -> None:
    """f others who stand beside it have a share of (f + 1)/(n − f), wherever they go."""
    x = torch.from_numpy(matrix("gaussian", 7, 2, 5, np.float64))
    x[4:] = far
    assert float(MoNNA(2, pivot=4)(x).norm()) > 0.5 * far
    assert float(MoNNA(3, pivot=0)(x).norm()) < 10


def test_a_copy_of_the_pivot_is_not_taken_for_it() -> None:
    """The pivot counts even where rows before it are as near to it as it is itself."""
    x = torch.tensor([[1.0], [1.0], [1.0], [5.0]])
    for pivot in range(3):
        assert float(MoNNA(1, pivot)(x)) == 1.0
    assert float(MoNNA(1, pivot=3)(x)) == pytest.approx(7 / 3)
    assert MoNNA(0, 2)(x[:3]).tolist() == [1.0]
