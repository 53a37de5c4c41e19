"""Lemma 5.1: with ARC no output is longer than the longest honest vector."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.robust import ARC, CWTM, NNM, Bucketing, CWMed, MultiKrum, RobustAggregator
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._cases import CASES, Case, by_name
from tests.robust._inputs import FAMILIES, matrix
from tests.robust.test_clips_and_mixes import vectors
from tests.robust.test_kappa import CONVERGED

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
FACES = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
# Like (0, 1), (1, 0), (1, 1), with the second moved a little so that no distances are equal.
CORNERS = np.array([[0.0, 1.0], [1.0, -0.1], [1.0, 1.0]])


def least_longest(x: np.ndarray, f: int) -> float:
    """min over S of max_{i ∈ S} ‖x_i‖: the norm below which n − f of them lie."""
    return float(min(reference.norms(x)[S].max() for S in reference.subsets(len(x), f)))


@every_case
@given(given=vectors(), mixed=st.booleans())
def test_output_is_never_longer_than_honest_vectors(case: Case, given: tuple, mixed: bool) -> None:
    x, f = given
    server = RobustAggregator(
        case.rule(f), clip=ARC(f), mix=NNM(f) if mixed else None, bound_output=True
    )
    assert np.linalg.norm(server(x)) <= least_longest(x, f) * (1 + 1e-9)


@every_case
@each("family", FAMILIES)
@each("n, f", [(4, 1), (7, 3), (10, 2)])
def test_output_is_never_longer_on_families(case: Case, family: str, n: int, f: int) -> None:
    x = matrix(family, n, f, d=20)
    limit = np.sort(reference.norms(reference.exact(x)))[n - f - 1]
    for mix in (None, NNM(f)):
        server = RobustAggregator(case.rule(f), clip=ARC(f), mix=mix, bound_output=True)
        assert np.linalg.norm(server(x).astype(np.float64)) <= limit * (1 + 1e-6)


@each("rule", [CWTM(1), CWMed()])
def test_coordinate_rules_need_the_bound(rule: object) -> None:
    """Their output can be longer than every input; F† brings it back."""
    free = RobustAggregator(rule, clip=ARC(1))(FACES)
    np.testing.assert_allclose(free, [1.0, 1.0, 1.0])
    assert np.linalg.norm(free) > least_longest(FACES, 1)
    bounded = RobustAggregator(rule, clip=ARC(1), bound_output=True)(FACES)
    np.testing.assert_allclose(np.linalg.norm(bounded), np.sqrt(2))
    np.testing.assert_allclose(bounded, free * np.sqrt(2 / 3))


def test_the_bound_is_off_unless_asked_for() -> None:
    assert RobustAggregator(CWMed()).bound_output is False


@each("mix", [None, NNM(1)])
@each("rule", [CWTM(1), CWMed(), CONVERGED, MultiKrum(1)])
def test_rules_without_arc_can_be_longer(rule: object, mix: object) -> None:
    """The counter-example: S = the first two, and even the bound on the output does not help."""
    for bound_output in (False, True):
        server = RobustAggregator(rule, mix=mix, bound_output=bound_output)
        assert np.linalg.norm(server(CORNERS)) > np.linalg.norm(CORNERS[:2], axis=1).max() * 1.01
    with_arc = RobustAggregator(rule, clip=ARC(1), mix=mix, bound_output=True)
    longest = np.linalg.norm(CORNERS[:2], axis=1).max()
    assert np.linalg.norm(with_arc(CORNERS)) <= longest * (1 + 1e-9)


def test_bound_after_bucketing() -> None:
    x = matrix("outliers", 9, 1, 12)
    server = RobustAggregator(
        by_name["cwtm"].rule(1), clip=ARC(1), mix=Bucketing(2), bound_output=True
    )
    assert np.linalg.norm(server(x)) <= np.sort(np.linalg.norm(x, axis=1))[7] * (1 + 1e-6)
