"""Every point to exactly one worker, by the seed alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.data import IID, PARTITIONS, Dirichlet, Extreme, Gamma, Partition, label_counts
from lit_byz.errors import BadRequest

labels_of_some_points = st.lists(st.integers(0, 9), min_size=20, max_size=300).map(np.array)
seeds = st.integers(0, 2**32)
partitions = st.one_of(
    st.just(IID()),
    st.just(Extreme()),
    st.builds(Gamma, gamma=st.floats(0, 1)),
    st.builds(Dirichlet, alpha=st.floats(0.5, 100), redraws=st.just(10_000)),
)


def test_names() -> None:
    assert list(PARTITIONS) == ["dirichlet", "extreme", "gamma", "iid"]


@given(labels=labels_of_some_points, partition=partitions, workers=st.integers(1, 6), seed=seeds)
def test_every_point_belongs_to_exactly_one_worker(
    labels: np.ndarray, partition: Partition, workers: int, seed: int
) -> None:
    parts = partition(labels, workers, seed)
    assert len(parts) == workers
    assert all(len(part) and part.dtype == np.int64 for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))


@given(labels=labels_of_some_points, partition=partitions, workers=st.integers(1, 6), seed=seeds)
def test_the_same_seed_deals_the_same(
    labels: np.ndarray, partition: Partition, workers: int, seed: int
) -> None:
    first = partition(labels, workers, seed)
    again = partition(torch.from_numpy(labels), workers, seed)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


@given(
    labels=labels_of_some_points,
    partition=st.one_of(st.just(IID()), st.just(Extreme()), st.builds(Gamma, st.floats(0, 1))),
    workers=st.integers(1, 20),
    seed=seeds,
)
def test_parts_of_equal_size(
    labels: np.ndarray, partition: Partition, workers: int, seed: int
) -> None:
    sizes = [len(part) for part in partition(labels, workers, seed)]
    assert max(sizes) - min(sizes) <= 1


@given(labels=labels_of_some_points, workers=st.integers(1, 20), seed=seeds)
def test_extreme_is_sorted_by_label(labels: np.ndarray, workers: int, seed: int) -> None:
    parts = Extreme()(labels, workers, seed)
    dealt = np.concatenate([np.sort(labels[part]) for part in parts])
    np.testing.assert_array_equal(dealt, np.sort(labels))


@given(labels=labels_of_some_points, workers=st.integers(1, 20), seed=seeds)
def test_gamma_runs_from_extreme_to_iid(labels: np.ndarray, workers: int, seed: int) -> None:
    pairs = [(Gamma(gamma=0.0), Extreme()), (Gamma(gamma=1.0), IID())]
    for gamma, other in pairs:
        for one, two in zip(
            gamma(labels, workers, seed), other(labels, workers, seed), strict=True
        ):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ["iid", "dirichlet", "gamma"])
def test_other_seeds_deal_otherwise(name: str) -> None:
    labels = np.arange(1000) % 10
    first, second = (PARTITIONS[name]()(labels, 4, seed) for seed in (1, 2))
    assert any(not np.array_equal(one, two) for one, two in zip(first, second, strict=True))


def distance_from_even(alpha: float) -> float:
    labels = np.repeat(np.arange(10), 1000)
    draws = [label_counts(Dirichlet(alpha)(labels, 10, seed), labels, 10) for seed in range(5)]
    return float(np.mean([np.abs(counts - 100).mean() for counts in draws]))


def test_smaller_alpha_is_more_heterogeneous() -> None:
    distances = [distance_from_even(alpha) for alpha in (0.05, 0.1, 0.5, 1.0, 100.0)]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 140
    assert distances[-1] < 20


def test_shares_have_the_variance_of_the_dirichlet_distribution() -> None:
    labels = np.repeat(np.arange(10), 2000)
    alpha, workers = 0.5, 8
    shares = np.stack(
        [label_counts(Dirichlet(alpha)(labels, workers, s), labels, 10) / 2000 for s in range(200)]
    )
    expected = (1 / workers) * (1 - 1 / workers) / (workers * alpha + 1)
    assert shares.mean() == pytest.approx(1 / workers)
    assert shares.var() == pytest.approx(expected, rel=0.05)


def test_an_empty_worker_is_redrawn() -> None:
    labels = np.zeros(40, int)
    empty_at_first = [seed for seed in range(20) if _fails(Dirichlet(0.3, redraws=0), labels, seed)]
    assert empty_at_first
    for seed in empty_at_first:
        assert all(len(part) for part in Dirichlet(0.3, redraws=1000)(labels, 5, seed))


def _fails(partition: Partition, labels: np.ndarray, seed: int) -> bool:
    try:
        partition(labels, 5, seed)
    except BadRequest:
        return True
    return False


def test_after_the_last_redraw_the_error_says_who_is_empty() -> None:
    partition = Dirichlet(alpha=0.001, redraws=3)
    with pytest.raises(
        BadRequest,
        match=r"^Dirichlet\(alpha=0.001, redraws=3\) left workers [\d, ]+ of 10 without data "
        r"at seed 7, in each of 4 draws; allow more redraws",
    ):
        partition(np.zeros(100, int), 10, 7)


@pytest.mark.parametrize("name", list(PARTITIONS))
def test_more_workers_than_points(name: str) -> None:
    with pytest.raises(BadRequest, match="3 points cannot be dealt to 4 workers"):
        PARTITIONS[name]()(np.array([0, 1, 2]), 4, 1)


@pytest.mark.parametrize("name", ["iid", "extreme", "gamma"])
def test_as_many_workers_as_points(name: str) -> None:
    parts = PARTITIONS[name]()(np.arange(7), 7, 1)
    assert [len(part) for part in parts] == [1] * 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dirichlet(alpha=0.0), "Dirichlet: alpha"),
        (lambda: Dirichlet(alpha=-1.0), "Dirichlet: alpha"),
        (lambda: Dirichlet(alpha=float("nan")), "Dirichlet: alpha"),
        (lambda: Dirichlet(redraws=-1), "Dirichlet: redraws"),
        (lambda: Gamma(gamma=1.1), "Gamma: gamma"),
        (lambda: Gamma(gamma=-0.1), "Gamma: gamma"),
        (lambda: IID()(np.arange(4), 0, 1), "IID: workers"),
        (lambda: IID()(np.arange(4), 2, -1), "IID: seed"),
    ],
)
def test_bad_arguments_are_named(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
