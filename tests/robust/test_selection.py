"""Who is averaged, when vectors are nearly the same: cancellation must not choose."""

import numpy as np
import pytest
import torch

from lit_byz.robust import ARC, MDA, NNM, SMEA, Krum, MoNNA, MultiKrum, RobustAggregator, _subsets
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._inputs import FAMILIES, matrix, tagged_cluster

LEAST_GAP = 1e-6


def separated_cluster(n: int, f: int, spread: int, dtype: type) -> np.ndarray:
    for seed in range(200):
        x = tagged_cluster(n, d=48, spread=spread, dtype=dtype, seed=seed)
        if reference.neighbour_gap(reference.exact(x), f) > LEAST_GAP:
            return x
    raise AssertionError(f"no cluster without a tie for n={n}, f={f}, spread={spread}")


def tagged_rows(output: torch.Tensor, n: int) -> set[int]:
    """The rows that took part in an average, from its tag coordinates."""
    return set(output[-n:].nonzero().flatten().tolist())


cluster_sizes = each("n, f", [(3, 1), (5, 2), (8, 3), (11, 1), (17, 4)])
spreads = each("spread", [3, 30, 1000])
dtypes = each("dtype", [np.float32, np.float64])


@dtypes
@spreads
@cluster_sizes
def test_neighbours_at_norm_1e6(n: int, f: int, spread: int, dtype: type, either_path: str) -> None:
    x = separated_cluster(n, f, spread, dtype)
    mixed = NNM(f)(torch.from_numpy(x))
    expected = [set(chosen) for chosen in reference.neighbours(reference.exact(x), f)]
    assert [tagged_rows(row, n) for row in mixed] == expected
    for pivot in range(n):
        assert tagged_rows(MoNNA(f, pivot)(torch.from_numpy(x)), n) == expected[pivot]


@dtypes
@spreads
@cluster_sizes
def test_lowest_scores_at_norm_1e6(
    n: int, f: int, spread: int, dtype: type, either_path: str
) -> None:
    x = separated_cluster(n, f, spread, dtype)
    scores = reference.krum_scores(reference.exact(x), f)
    (krum,) = tagged_rows(Krum(f)(torch.from_numpy(x)), n)
    assert scores[krum] <= scores.min() * (1 + LEAST_GAP)
    chosen = tagged_rows(MultiKrum(f)(torch.from_numpy(x)), n)
    assert len(chosen) == n - f
    assert scores[list(chosen)].max() <= np.sort(scores)[n - f - 1] * (1 + LEAST_GAP)


@dtypes
@spreads
@each("n, f", [(3, 1), (5, 2), (8, 3), (11, 1)])
def test_smallest_spread_at_norm_1e6(n: int, f: int, spread: int, dtype: type) -> None:
    x = separated_cluster(n, f, spread, dtype)
    for rule, answers in ((MDA(f), reference.mda), (SMEA(f), reference.smea)):
        chosen = tagged_rows(rule(torch.from_numpy(x)), n)
        allowed = [tagged_rows(torch.from_numpy(a), n) for a in answers(reference.exact(x), f)]
        assert chosen in allowed, rule


@each("rule", [MDA(3), SMEA(3)])
def test_subsets_in_any_portions(rule: object) -> None:
    """All subsets at once, a few, or one by one: the first of the best is taken."""
    x = torch.from_numpy(np.stack([matrix(name, 9, 3, 5, np.float64) for name in FAMILIES]))
    x[:, 4:6] = x[:, 3:4]  # ties
    together = RobustAggregator(rule).explain(x)
    for entries in (1, 500, 5000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_subsets, "ENTRIES", entries)
            assert torch.equal(RobustAggregator(rule).explain(x).selected, together.selected)


def test_rounding_does_not_choose_between_subsets() -> None:
    """Three of one vector and two of another are spread as far as two and three."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b, c = rng.normal(size=(3, 40))
        x = np.stack([a, b, a, b, b, a, 5 * c])
        selected = RobustAggregator(SMEA(2)).explain(torch.from_numpy(x)).selected
        assert selected.nonzero().flatten().tolist() == [0, 1, 2, 3, 4]


@each("far", [1e100, 9e153])
def test_squared_distances_that_overflow(far: float, either_path: str) -> None:
    """Vectors so long that only their distances have no number are far away, and no more."""
    x = torch.from_numpy(matrix("gaussian", 7, 2, 2, np.float64))
    x[1], x[4] = far, -far
    honest = [0, 2, 3, 5, 6]
    for rule in (MDA(2), SMEA(2), MoNNA(2), MultiKrum(2)):
        torch.testing.assert_close(rule(x), x[honest].mean(0))


@each("scale", [1e-30, 1e-10, 1.0, 1e9])
def test_neighbours_across_a_gap_of_scales(scale: float, either_path: str) -> None:
    """A huge vector among them does not blur the distances between small ones."""
    rng = np.random.default_rng(0)
    x = scale * rng.normal(size=(9, 40))
    x[4] *= 1e9
    found = NNM(2)(torch.from_numpy(x))
    np.testing.assert_allclose(found, reference.nnm(x, 2), rtol=1e-9, atol=0)


def test_neighbours_of_clipped_vectors(either_path: str) -> None:
    """Clipping may make far vectors near: neighbours are found among what was clipped."""
    rng = np.random.default_rng(1)
    direction = rng.normal(size=30)
    x = np.outer(np.array([1.0, 1.1, 50.0, 0.9, 70.0, 1.05, 1.2]), direction)
    x += 1e-3 * rng.normal(size=x.shape)
    server = RobustAggregator(MultiKrum(2), clip=ARC(2), mix=NNM(2))
    expected = reference.multi_krum(reference.nnm(reference.arc(x, 2), 2), 2)
    output = server(torch.from_numpy(x)).numpy()
    assert min(np.linalg.norm(output - answer) for answer in expected) < 1e-9 * np.linalg.norm(x)
