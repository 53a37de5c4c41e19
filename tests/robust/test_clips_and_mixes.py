"""Clipping and mixing on their own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lit_byz.robust import (
    ARC,
    NNM,
    Average,
    Bucketing,
    CWMed,
    NoClip,
    NoMix,
    RobustAggregator,
    StaticClip,
)
from tests._each import each
from tests.robust import _properties as properties
from tests.robust import _reference as reference
from tests.robust._inputs import FAMILIES, SIZES, matrix

ROWS = {
    "none": NoClip(),
    "static": StaticClip(2.0),
    "arc": ARC(2),
    "nnm": NNM(2),
    "bucketing": Bucketing(2, seed=3),
    "no_mix": NoMix(),
}
every_step = pytest.mark.parametrize("step", ROWS.values(), ids=ROWS.keys())


@st.composite
def vectors(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Small matrices with the values that shrinking likes: zeros, ties, equal rows."""
    n = draw(st.integers(1, 9))
    f = draw(st.integers(0, (n - 1) // 2))
    values = st.floats(-1e3, 1e3, width=32, allow_subnormal=False)
    x = draw(hnp.arrays(np.float64, (n, draw(st.integers(1, 4))), elements=values))
    return x, f


@pytest.mark.parametrize("family", FAMILIES)
@each("n, f", SIZES[::2])
def test_clips_match_their_references(family: str, either_path: str, n: int, f: int) -> None:
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-12)):
        x = matrix(family, n, f, d=57, dtype=dtype)
        exact = reference.exact(x)
        np.testing.assert_allclose(ARC(f)(x), reference.arc(exact, f), rtol=tolerance)
        for C in (0.0, 1.0, 1e4):
            expected = reference.clip_at(exact, C)
            np.testing.assert_allclose(StaticClip(C)(x), expected, rtol=tolerance)
        assert np.array_equal(NoClip()(x), x)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "sparse"])
@each("n, f", SIZES[::2])
def test_mixing_matches_its_reference(family: str, either_path: str, n: int, f: int) -> None:
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-9)):
        x = matrix(family, n, f, d=57, dtype=dtype)
        exact = reference.exact(x)
        if f > 1 and reference.neighbour_gap(exact, f) < 1e-9 and family == "unequal":
            continue
        expected = reference.nnm(exact, f)
        error = np.linalg.norm(NNM(f)(x) - expected, axis=1) / np.linalg.norm(expected, axis=1)
        assert error.max() < tolerance, (n, f)


@given(given=vectors())
def test_arc_clips_at_most_k_and_leaves_one_of_any_n_minus_f(given: tuple) -> None:
    x, f = given
    n = len(x)
    explained = RobustAggregator(Average(), clip=ARC(f)).explain(x)
    clipped = np.asarray(explained.clipped)
    k = (2 * f * (n - f)) // n
    assert clipped.sum() <= k < n - f
    for S in reference.subsets(n, f):
        assert not clipped[S].all()
    assert float(explained.threshold) == pytest.approx(reference.arc_threshold(x, f), rel=1e-12)
    norms, threshold = reference.norms(x), float(explained.threshold)
    assert clipped[norms > threshold * (1 + 1e-12)].all()
    assert not clipped[norms < threshold * (1 - 1e-12)].any()


@each("n", range(1, 80))
def test_arc_counts_in_integers(n: int) -> None:
    """k = ⌊2f(n−f)/n⌋ for every f, from distinct norms: the threshold tells k."""
    x = np.arange(1.0, n + 1).reshape(n, 1)
    for f in range((n + 1) // 2):
        threshold = RobustAggregator(Average(), clip=ARC(f)).explain(x).threshold
        assert n - round(float(threshold)) == (2 * f * (n - f)) // n


def test_arc_where_floating_point_would_miscount() -> None:
    """2 · 33/242 · 209 is 57, but 56.99… in floating point."""
    x = np.arange(1.0, 243).reshape(242, 1)
    assert np.sum(ARC(33)(x) != x) == 57


@each("zeta, count", [(0.0, 0), (0.5, 1), (1.0, 2), (1.5, 3), (2.0, 4)])
def test_arc_with_another_zeta(zeta: float, count: int) -> None:
    """n = 10, f = 3: ⌊ζ · 2.1⌋ vectors are clipped."""
    x = np.arange(1.0, 11).reshape(10, 1)
    assert np.sum(ARC(3, zeta=zeta)(x) != x) == count


@given(given=vectors())
def test_clipping_changes_lengths_only(given: tuple) -> None:
    x, f = given
    for clip in (ARC(f), StaticClip(5.0)):
        y = clip(x)
        lengths, before = reference.norms(y), reference.norms(x)
        assert (lengths <= before * (1 + 1e-12)).all()
        cosines = (x * y).sum(axis=1)
        np.testing.assert_allclose(cosines, lengths * before, rtol=1e-9, atol=1e-300)
        untouched = lengths == before
        assert np.array_equal(x[untouched], y[untouched])


@given(given=vectors())
def test_arc_without_byzantine_workers_changes_nothing(given: tuple) -> None:
    x, _ = given
    assert np.array_equal(ARC(0)(x), x)


@given(given=vectors())
def test_nnm_averages_nearest_vectors(given: tuple) -> None:
    """Whatever the ties: row i is the mean of n − f rows, none farther than one left out."""
    x, f = given
    n = len(x)
    tagged = np.concatenate([x, 1e-9 * np.eye(n)], axis=1)  # too small to change an order
    shares = NNM(f)(tagged)[:, x.shape[1] :] / 1e-9
    np.testing.assert_allclose(shares * (n - f), np.round(shares * (n - f)), atol=1e-6)
    distances = reference.squared_distances(x)
    for i in range(n):
        inside = shares[i] > 0.5 / n
        assert inside.sum() == n - f
        assert inside[i]
        if f:
            slack = 1e-9 * max(1.0, distances.max())
            assert distances[i][inside].max() <= distances[i][~inside].min() + slack


def test_nnm_of_copies() -> None:
    x = np.repeat(matrix("gaussian", 3, 1, 5, np.float64), 3, axis=0)
    np.testing.assert_allclose(NNM(4)(x), reference.nnm(x, 4), rtol=1e-12)


@each("n, s", [(1, 1), (6, 1), (6, 2), (7, 2), (7, 3), (7, 7), (7, 10)])
def test_bucketing_deals_every_vector_once(n: int, s: int) -> None:
    shares = Bucketing(s, seed=5)(np.eye(n))
    assert len(shares) == -(-n // s)
    sizes = (shares > 0).sum(axis=1)
    assert (sizes[:-1] == s).all()
    assert ((shares > 0).sum(axis=0) == 1).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    x = matrix("gaussian", n, 0, 9, np.float64)
    np.testing.assert_allclose(Bucketing(s, seed=5)(x), shares @ x, rtol=1e-12)


def test_bucketing_depends_on_its_seed_and_the_round_alone() -> None:
    x = np.eye(12)
    assert np.array_equal(Bucketing(3, seed=1)(x), Bucketing(3, seed=1)(x))
    assert not np.array_equal(Bucketing(3, seed=1)(x), Bucketing(3, seed=2)(x))
    assert not np.array_equal(Bucketing(3, seed=1)(x, 0), Bucketing(3, seed=1)(x, 1))
    x = matrix("gaussian", 12, 0, 4)
    server = RobustAggregator(CWMed(), mix=Bucketing(5, seed=1))
    assert not np.array_equal(server(x, 0), server(x, 1))
    assert np.array_equal(server(x, 1), RobustAggregator(CWMed(), mix=Bucketing(5, seed=1))(x, 1))


@every_step
@each("family", FAMILIES)
def test_input_is_never_changed(step: object, family: str) -> None:
    properties.assert_input_untouched(step, torch.from_numpy(matrix(family, 7, 2, 20)))


@every_step
@each("kind", [torch.from_numpy, np.copy, list])
def test_what_comes_back_is_the_caller_s_to_change(step: object, kind: object) -> None:
    x = matrix("gaussian", 7, 2, 5)
    given = kind(x)
    for row in step(given):
        row[:] = 1
    assert np.array_equal(np.stack([np.asarray(row) for row in given]), x)
    assert np.array_equal(x, matrix("gaussian", 7, 2, 5))


@every_step
@each("dtype", [np.float32, np.float64])
def test_kind_and_dtype_come_back(step: object, dtype: type) -> None:
    x = matrix("gaussian", 7, 2, 5, dtype)
    tensor = torch.from_numpy(x)
    expected = step(tensor)
    assert isinstance(expected, torch.Tensor)
    assert expected.dtype == tensor.dtype
    array = step(x)
    assert isinstance(array, np.ndarray)
    assert array.dtype == dtype
    assert np.array_equal(array, expected.numpy())
    for rows in (list(x), list(tensor)):
        output = step(rows)
        assert isinstance(output, list)
        assert all(type(row) is type(rows[0]) for row in output)
        assert np.array_equal(np.stack([np.asarray(row) for row in output]), expected.numpy())


@every_step
def test_lists_of_numbers(step: object) -> None:
    x = matrix("gaussian", 7, 2, 5, np.float64)
    output = step(x.tolist())
    assert output == step(x).tolist()
    assert output == step([tuple(row) for row in x.tolist()])


@every_step
def test_batch_dimensions(step: object) -> None:
    batch = np.stack([matrix(family, 7, 2, 6, np.float64) for family in FAMILIES])
    together = step(batch.reshape(2, 4, 7, 6))
    for i, x in enumerate(batch):
        np.testing.assert_allclose(together[i // 4, i % 4], step(x), rtol=1e-9)


@each("step", [ARC(2), StaticClip(2.0), NNM(2)])
def test_order_of_the_vectors_moves_along(step: object) -> None:
    x = matrix("unequal", 9, 2, 6, np.float64)
    shuffled = np.random.default_rng(0).permutation(9)
    np.testing.assert_allclose(step(x[shuffled]), step(x)[shuffled], rtol=1e-12)
