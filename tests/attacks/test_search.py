"""The searches on functions whose best factor is known."""

from collections.abc import Callable

import pytest
import torch

from lit_byz.attacks._search import (
    Care,
    Found,
    coarse_search,
    grid_search,
    line_search,
    published_search,
    spaced,
)
from tests._each import each

Function = Callable[[torch.Tensor], torch.Tensor]
LOW, HIGH, POINTS, EVALUATIONS = 0.0, 1e5, 320, 16


def grid(function: Function, low: float = LOW, high: float = HIGH) -> Found:
    return grid_search(lambda t, care: function(t), low, high, POINTS)


def line(function: Function, low: float = LOW, high: float = HIGH) -> Found:
    return line_search(lambda t, care: function(t), low, high, POINTS, EVALUATIONS)


both = pytest.mark.parametrize("search", [grid, line])


@both
@each("at", [0.02, 0.3, 1.0, 7.7, 60.0, 900.0, 3e4])
def test_one_peak(search: Callable, at: float) -> None:
    found = search(lambda t: torch.exp(-((t - at) ** 2) / (2 * (at / 3) ** 2)))
    assert found.damage > 0.9999
    assert found.factor == pytest.approx(at, rel=0.01)
    assert not found.at_edge


@both
@each("at", [0.11, 1.3, 23.0, 4000.0])
def test_a_tooth_is_climbed_to_its_top(search: Callable, at: float) -> None:
    """Grows up to ``at``, falls by half, and stays there."""
    found = search(lambda t: torch.where(t <= at, t / at, 0.5))
    assert found.damage > 0.9995  # ten times as near as the grid around a peak gets
    assert found.factor <= at
    assert not found.at_edge


@both
def test_the_first_tooth_is_not_the_best(search: Callable) -> None:
    """Where a search that climbs from 0 stays at 1, with 0.3 of what there is."""

    def teeth(t: torch.Tensor) -> torch.Tensor:
        first = torch.where(t <= 1, 0.3 * t, 0.0)
        second = torch.where((t > 5) & (t <= 6), t / 6, 0.0)
        return first + second

    found = search(teeth)
    assert found.damage > 0.995
    assert 5 < found.factor <= 6


@both
def test_a_plateau_hides_no_peak_before_it(search: Callable) -> None:
    def plateau(t: torch.Tensor) -> torch.Tensor:
        return torch.where(t <= 4, t / 4, 0.96 + 1e-7 * torch.sin(1000 * t))

    found = search(plateau)
    assert found.damage > 0.995
    assert found.factor <= 4


@both
def test_a_limit_is_not_chased(search: Callable) -> None:
    found = search(lambda t: t / (1 + t))
    assert found.damage > 0.9999
    assert found.factor < HIGH
    assert not found.at_edge


@both
def test_no_effect_means_no_attack(search: Callable) -> None:
    for value in (0.0, 3.0):
        found = search(lambda t, value=value: torch.full_like(t, value))
        assert found == Found(0.0, value, at_edge=False)


@both
@each(
    "low, high, function, best",
    [
        (0.0, 50.0, lambda t: t, 50.0),
        (-20.0, 50.0, lambda t: -t + 60, -20.0),
        (2.0, 9.0, lambda t: 100 - t, 2.0),
        (-9.0, -2.0, lambda t: 100 + t, -2.0),
    ],
)
def test_edges_are_reported(
    search: Callable, low: float, high: float, function: Function, best: float
) -> None:
    found = search(function, low, high)
    assert found.at_edge
    assert found.factor == best


@both
def test_nothing_outside_the_range_is_looked_at(search: Callable) -> None:
    def inside(t: torch.Tensor) -> torch.Tensor:
        assert bool(((t >= -3) & (t <= 40)).all())
        return -((t - 12) ** 2) + 500

    assert search(inside, -3.0, 40.0).factor == pytest.approx(12, rel=1e-2)


@pytest.mark.parametrize("search", [grid_search, line_search])
def test_few_exact_looks(search: Callable) -> None:
    """What is exact is dear: a handful of factors, and only in the end."""
    looks: list[tuple[Care, int]] = []

    def damage(t: torch.Tensor, care: Care) -> torch.Tensor:
        looks.append((care, len(t)))
        return torch.sin(t).abs() / (1 + t / 50)

    more = (EVALUATIONS,) if search is line_search else ()
    search(damage, LOW, HIGH, POINTS, *more)
    assert [care for care, _ in looks].count(Care.SETTLE) == 1
    assert looks[-1][0] is Care.SETTLE
    assert looks[-1][1] <= 5
    assert looks[0] == (Care.LOCATE, POINTS)
    assert sum(count for care, count in looks if care is Care.MEASURE) <= 250


def looked_at(function: Callable[[float], float]) -> tuple[Callable, list[float]]:
    """A damage that keeps which factors were looked at, all of them exactly."""
    seen: list[float] = []

    def damage(t: torch.Tensor, care: Care) -> torch.Tensor:
        assert care is Care.SETTLE
        seen.extend(t.tolist())
        return torch.tensor([function(factor) for factor in t.tolist()], dtype=torch.float64)

    return damage, seen


def test_published_steps_by_hand() -> None:
    """Grows up to 40: 10 and 30 are taken, 70 is not, and every step from there on is 0.8 of the
    one before it. 30 + 32 and 30 + 25.6 … are too far, until 30 + 8.39 is not."""
    damage, seen = looked_at(lambda t: t if t <= 40 else 0.0)
    found = published_search(damage, 20, 0.0)
    assert len(seen) == 20
    assert seen[:4] == [0, 10, 30, 70]
    steps = [40 * 0.8**k for k in range(1, 17)]
    taken = 30 + steps[6]
    assert seen[4:11] == pytest.approx([30 + step for step in steps[:7]])
    assert seen[11] == pytest.approx(taken + steps[7])
    assert found.damage == found.factor == max(t for t in seen if t <= 40)
    assert not found.at_edge


def test_published_starts_anywhere() -> None:
    damage, seen = looked_at(lambda t: t if t <= 41 else 0.0)
    found = published_search(damage, 20, 1.0)
    from_0, seen_from_0 = looked_at(lambda t: t if t <= 40 else 0.0)
    assert found.factor == 1 + published_search(from_0, 20, 0.0).factor
    assert seen == [1 + t for t in seen_from_0]


def test_published_takes_only_what_is_strictly_better() -> None:
    damage, seen = looked_at(lambda t: 3.0)
    assert published_search(damage, 5, 0.0) == Found(0.0, 3.0, at_edge=False)
    assert seen == pytest.approx([0, 10, 8, 6.4, 5.12])


def test_published_runs_away() -> None:
    damage, seen = looked_at(lambda t: t)
    assert published_search(damage, 20, 0.0) == Found(5242870.0, 5242870.0, at_edge=True)
    assert seen[:4] == [0, 10, 30, 70]


def test_published_misses_a_tooth_near_its_start() -> None:
    damage, _ = looked_at(lambda t: t if t <= 0.1 else 0.05)
    assert published_search(damage, 20, 0.0).damage == 0.05


@each(
    "function, best, at_edge",
    [
        (lambda t: -abs(t - 3.1), 3.0, False),
        (lambda t: t, 10.0, True),
        (lambda t: -t, 0.5, True),
        (lambda t: 1.0 if t in (2.0, 4.0) else 0.0, 2.0, False),
        (lambda t: 0.0, 0.5, True),
    ],
)
def test_coarse(function: Callable[[float], float], best: float, at_edge: bool) -> None:
    damage, seen = looked_at(function)
    assert coarse_search(damage, 0.5, 10.0, 20) == Found(best, function(best), at_edge)
    assert seen == [k / 2 for k in range(1, 21)]


@each(
    "function, best, at_edge",
    [
        (lambda t: -abs(t + 3.1), -3.0, False),
        (abs, -5.0, True),
        (lambda t: t, 5.0, True),
        (lambda t: 1.0 if abs(t) == 2 else 0.0, -2.0, False),
        (lambda t: 1.0 if t == -0.5 else 0.0, -0.5, True),
    ],
)
def test_coarse_on_both_sides(
    function: Callable[[float], float], best: float, at_edge: bool
) -> None:
    damage, seen = looked_at(function)
    found = coarse_search(damage, 0.5, 5.0, 20, mirrored=True)
    assert found == Found(best, function(best), at_edge)
    assert seen == [k / 2 for k in range(-10, 11) if k]


@each("low, high", [(0.0, 1e5), (-4.0, 4.0), (-1e3, 10.0), (2.0, 3.0)])
def test_spacing(low: float, high: float) -> None:
    factors = spaced(low, high, 101)
    gaps = factors.diff()
    assert factors[0] == low
    assert factors[-1] == high
    assert bool((gaps > 0).all())
    assert float(gaps.min()) == pytest.approx(float(gaps[factors[:-1].abs().argmin()]), rel=0.2)
