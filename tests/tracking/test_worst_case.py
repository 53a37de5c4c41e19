"""The worst case over attacks, per seed, then over seeds."""

import statistics

import pytest

from lit_byz.tracking.worst_case import worst_case


def test_worst_case() -> None:
    results = [
        *((3, "sf", 0.9), (3, "foe", 0.5), (3, "alie", 0.6)),
        *((1, "sf", 0.3), (1, "foe", 0.8), (2, "sf", 0.4)),
    ]
    found = worst_case(results)
    assert found.per_seed == {1: 0.3, 2: 0.4, 3: 0.5}
    assert found.mean == pytest.approx(0.4)
    assert found.std == pytest.approx(statistics.stdev([0.3, 0.4, 0.5]))
    assert worst_case(results[::-1]).per_seed == found.per_seed


def test_one_seed_has_no_spread() -> None:
    assert worst_case([(1, "sf", 0.7)]).std == 0.0


def test_no_runs() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        worst_case([])
