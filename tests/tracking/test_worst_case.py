"""The worst case over attacks, per seed, then over seeds: a value, or what is known of it."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.tracking.worst_case import Accuracy, worst_case

ATTACKS = ("sf", "foe", "alie")
accuracies = st.floats(0, 1)
tables = st.dictionaries(
    st.integers(1, 9), st.fixed_dictionaries(dict.fromkeys(ATTACKS, accuracies)), min_size=1
)


def known(table: dict[int, dict[str, float]]) -> dict[int, dict[str, Accuracy | None]]:
    return {seed: {a: Accuracy(v) for a, v in runs.items()} for seed, runs in table.items()}


def test_smallest_of_each_seed_then_mean_and_spread() -> None:
    found = worst_case(
        known(
            {
                3: {"sf": 0.9, "foe": 0.5, "alie": 0.6},
                1: {"sf": 0.3, "foe": 0.8},
                2: {"sf": 0.4},
            }
        )
    )
    assert (found.kind, found.exact) == ("exact", True)
    assert list(found.bounds.items()) == [(1, (0.3, 0.3)), (2, (0.4, 0.4)), (3, (0.5, 0.5))]
    assert found.mean == found.at_least == found.at_most == pytest.approx(0.4)
    assert found.std == pytest.approx(statistics.stdev([0.3, 0.4, 0.5]))
    assert (found.seeds, found.known, found.missing) == (3, 6, 0)


def test_one_seed_has_no_spread() -> None:
    assert worst_case(known({1: {"sf": 0.7}})).std is None


def test_a_missing_run_leaves_an_upper_bound() -> None:
    """The attacks that happened to work may be the harmless ones."""
    found = worst_case({1: {"sf": Accuracy(0.9), "foe": None}, 2: {"sf": Accuracy(0.7)}})
    assert found.kind == "at most"
    assert found.bounds == {1: (0.0, 0.9), 2: (0.7, 0.7)}
    assert found.mean == found.at_most == pytest.approx(0.8)
    assert found.at_least == pytest.approx(0.35)
    assert (found.known, found.missing) == (2, 1)


def test_a_run_that_was_stopped_early_leaves_a_lower_bound() -> None:
    found = worst_case({1: {"sf": Accuracy(0.6, True), "foe": Accuracy(0.8)}})
    assert (found.kind, found.bounds) == ("at least", {1: (0.6, 0.8)})
    assert found.mean == found.at_least == 0.6


def test_a_bound_above_another_run_does_not_matter() -> None:
    found = worst_case({1: {"sf": Accuracy(0.9, True), "foe": Accuracy(0.8)}})
    assert (found.kind, found.mean) == ("exact", 0.8)


def test_only_bounds() -> None:
    found = worst_case({1: {"sf": Accuracy(0.9, True), "foe": Accuracy(0.8, True)}})
    assert (found.kind, found.bounds, found.mean) == ("at least", {1: (0.8, 1.0)}, 0.8)


def test_nothing_is_known() -> None:
    found = worst_case({1: {"sf": None, "foe": None}, 2: {"sf": None}})
    assert (found.kind, found.exact, found.known, found.missing) == ("unknown", False, 0, 3)
    assert (found.at_least, found.at_most) == (0.0, 1.0)


@given(tables, st.data())
def test_bounds_hold_and_are_never_taken_back(
    table: dict[int, dict[str, float]], data: st.DataObject
) -> None:
    """Whatever part of the runs is known, exactly or from below, and whatever comes later."""
    truth = statistics.fmean(min(runs.values()) for runs in table.values())
    earlier: dict[int, dict[str, Accuracy | None]] = {}
    later: dict[int, dict[str, Accuracy | None]] = {}
    for seed, runs in table.items():
        earlier[seed], later[seed] = {}, {}
        for attack, value in runs.items():
            states = [data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))]
            bounded = Accuracy(value * data.draw(accuracies), True)
            both = (None, bounded, Accuracy(value))
            earlier[seed][attack], later[seed][attack] = (both[state] for state in sorted(states))
    before, after = worst_case(earlier), worst_case(later)
    assert before.at_least <= after.at_least <= truth <= after.at_most <= before.at_most
    for found in (before, after):
        if found.kind == "exact":
            assert found.mean == truth
        elif found.kind == "at least":
            assert found.mean <= truth
        else:
            assert found.mean >= truth
    whole = worst_case(known(table))
    assert (whole.kind, whole.mean) == ("exact", truth)


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_seeds_and_attacks_does_not_matter(
    table: dict[int, dict[str, float]], random: st.DataObject
) -> None:
    def shuffled(items: dict) -> dict:  # type: ignore[type-arg]
        pairs = list(items.items())
        random.shuffle(pairs)  # type: ignore[attr-defined]
        return dict(pairs)

    mixed = shuffled({seed: shuffled(runs) for seed, runs in table.items()})
    assert worst_case(known(mixed)) == worst_case(known(table))
