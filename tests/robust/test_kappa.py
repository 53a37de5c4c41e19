"""(f, κ)-robustness: the bounds that are proved, held against every S on many inputs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lit_byz.robust import (
    ARC,
    CWTM,
    NNM,
    SMEA,
    Average,
    CWMed,
    GeometricMedian,
    Krum,
    MultiKrum,
    RobustAggregator,
    Rule,
    StaticClip,
    theory,
)
from tests._each import each
from tests.robust import _reference as reference
from tests.robust._cases import ROBUST, Case, having
from tests.robust._inputs import FAMILIES, matrix

# The geometric median itself, not three iterations towards it.
CONVERGED = GeometricMedian(nu=1e-12, iterations=1000, tolerance=1e-10)
# Errors below this share of the largest vector are rounding. The geometric median is found from
# squared distances, which leaves half of float64's digits.
ROUNDING = {"gm": 1e-6}


def rule(name: str, f: int) -> Rule:
    rules: dict[str, Rule] = {
        "cwtm": CWTM(f),
        "cwmed": CWMed(),
        "gm": CONVERGED,
        "krum": Krum(f),
        "multi_krum": MultiKrum(f),
        "smea": SMEA(f),
    }
    return rules[name]


def kappa_alone(name: str, n: int, f: int) -> float:
    """κ of a rule without mixing: Allouah et al., *Fixing by Mixing*, 2023, table 1.

    SMEA's: two sets of n − f rows share n − 2f of them, whose mean is within the square root of
    δ times the main variance of either set's mean.
    """
    delta = f / (n - 2 * f)
    return {
        "cwtm": 6 * delta * (1 + delta),
        "cwmed": 4 * (1 + delta) ** 2,
        "gm": 4 * (1 + delta) ** 2,
        "krum": 6 * (1 + delta),
        "smea": 4 * delta,
    }[name]


def assert_robust(output: np.ndarray, x: np.ndarray, f: int, kappa: float, slack: float) -> None:
    """‖F(x) − x̄_S‖² ≤ κ · mean ‖x_i − x̄_S‖² for every S of n − f rows."""
    rounding = slack * reference.norms(x).max()
    for S in reference.subsets(len(x), f):
        mean = x[S].mean(axis=0)
        spread = np.mean(((x[S] - mean) ** 2).sum(axis=1))
        error = np.linalg.norm(output - mean)
        assert error <= math.sqrt(kappa * spread) * (1 + 1e-9) + rounding, (S, error, spread)


@st.composite
def hostile(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Any small matrix, or one of a family; f at least 1."""
    n = draw(st.integers(3, 8))
    f = draw(st.integers(1, (n - 1) // 2))
    d = draw(st.integers(1, 3))
    if draw(st.booleans()):
        values = st.floats(-100, 100, width=16, allow_subnormal=False)
        return draw(hnp.arrays(np.float64, (n, d), elements=values)), f
    family = draw(st.sampled_from(sorted(FAMILIES)))
    return matrix(family, n, f, d, np.float64, seed=draw(st.integers(0, 1000))), f


after_mixing = pytest.mark.parametrize("name", ["cwtm", "cwmed", "gm", "multi_krum"])
without_mixing = pytest.mark.parametrize("name", ["cwtm", "cwmed", "gm", "krum", "smea"])
small_sizes = pytest.mark.parametrize(
    ("n", "f"), [(3, 1), (5, 2), pytest.param(7, 2, marks=pytest.mark.slow)]
)


@after_mixing
@given(given=hostile())
def test_rules_after_mixing_are_robust(name: str, given: tuple) -> None:
    x, f = given
    server = RobustAggregator(rule(name, f), mix=NNM(f))
    kappa = theory.kappa_nnm(len(x), f)
    assert_robust(server(x), x, f, kappa, ROUNDING.get(name, 1e-9))


@after_mixing
@given(given=hostile())
def test_arc_keeps_rules_after_mixing_robust(name: str, given: tuple) -> None:
    """Theorem 3.2."""
    x, f = given
    server = RobustAggregator(rule(name, f), clip=ARC(f), mix=NNM(f))
    kappa = theory.kappa_arc(theory.kappa_nnm(len(x), f), len(x), f)
    assert_robust(server(x), x, f, kappa, ROUNDING.get(name, 1e-9))


@without_mixing
@given(given=hostile())
def test_arc_keeps_rules_without_mixing_robust(name: str, given: tuple) -> None:
    """Theorem 3.2 again, where κ is smaller and the theorem has less room."""
    x, f = given
    n, slack = len(x), ROUNDING.get(name, 1e-9)
    kappa = kappa_alone(name, n, f)
    assert_robust(rule(name, f)(x), x, f, kappa, slack)
    clipped = RobustAggregator(rule(name, f), clip=ARC(f))
    assert_robust(clipped(x), x, f, theory.kappa_arc(kappa, n, f), slack)
    bounded = RobustAggregator(rule(name, f), clip=ARC(f), bound_output=True)
    assert_robust(bounded(x), x, f, theory.kappa_arc(kappa, n, f), slack)


@given(given=hostile())
def test_smallest_main_variance_is_robust_in_every_direction(given: tuple) -> None:
    """‖F(x) − x̄_S‖² ≤ 4f/(n − 2f) · the main variance of S, which is less than the mean of
    ‖x_i − x̄_S‖² wherever S is spread in more than one direction."""
    x, f = given
    output, slack = SMEA(f)(x), 1e-9 * reference.norms(x).max()
    for S in reference.subsets(len(x), f):
        bound = 4 * f / (len(x) - 2 * f) * reference.main_variance(x[S])
        error = np.linalg.norm(output - x[S].mean(axis=0))
        assert error <= math.sqrt(bound) * (1 + 1e-7) + slack, S


@given(given=hostile(), zeta=st.sampled_from([0.0, 0.5, 1.0, 1.5]))
def test_arc_with_another_zeta_keeps_rules_robust(given: tuple, zeta: float) -> None:
    x, f = given
    server = RobustAggregator(CWTM(f), clip=ARC(f, zeta=zeta))
    kappa = theory.kappa_arc(kappa_alone("cwtm", len(x), f), len(x), f, zeta)
    assert_robust(server(x), x, f, kappa, 1e-9)


@after_mixing
@small_sizes
def test_searched_inputs_stay_within_the_bounds(name: str, n: int, f: int) -> None:
    """Inputs made to be bad are not bad enough, and at least as bad as the best rule's."""
    mixed = theory.kappa_nnm(n, f)
    steps = 2 if name == "gm" else 12
    for clip, kappa in ((None, mixed), (ARC(f), theory.kappa_arc(mixed, n, f))):
        parts = {} if clip is None else {"clip": clip}
        server = RobustAggregator(rule(name, f), mix=NNM(f), **parts)
        found = theory.search_kappa(
            server, n, f, d=2, restarts=4, steps=steps, tolerance=ROUNDING.get(name, 1e-9)
        )
        assert theory.kappa_lower(n, f) * (1 - 1e-6) <= found.ratio <= kappa
        assert_robust(server(found.x).numpy(), found.x.numpy(), f, kappa, 1e-6)


@pytest.mark.parametrize("name", ["cwtm", "cwmed", "krum", "smea"])
@small_sizes
def test_searched_inputs_stay_within_the_bounds_without_mixing(name: str, n: int, f: int) -> None:
    kappa = kappa_alone(name, n, f)
    for clip, bound in ((None, kappa), (ARC(f), theory.kappa_arc(kappa, n, f))):
        parts = {} if clip is None else {"clip": clip}
        server = RobustAggregator(rule(name, f), **parts)
        found = theory.search_kappa(server, n, f, d=2, restarts=4, steps=12, tolerance=1e-9)
        assert theory.kappa_lower(n, f) * (1 - 1e-6) <= found.ratio <= bound


@pytest.mark.parametrize("case", having(ROBUST), ids=lambda case: case.name)
@each("n, f", [(3, 1), (4, 1), (5, 2), (8, 3), (11, 4)])
def test_no_rule_is_better_than_the_lower_bound(case: Case, n: int, f: int) -> None:
    """n − f zeros and f ones: a robust rule must answer 0, and S may hold all the ones."""
    x = torch.zeros(n, 1, dtype=torch.float64)
    x[n - f :] = 1.0
    output = case.rule(f)(x)
    assert float(output) == 0.0
    ratio, honest = theory.worst_ratio(x, output, f)
    assert ratio == pytest.approx(theory.kappa_lower(n, f), rel=1e-9)
    assert set(range(n - f, n)) <= set(honest)


def test_averaging_is_not_robust() -> None:
    assert math.isinf(theory.search_kappa(Average(), n=5, f=1).ratio)


@each("C", [0.0, 1e-3, 1.0, 50.0])
@pytest.mark.parametrize("name", ["cwtm", "cwmed", "gm", "krum", "multi_krum"])
@each("mixed", [False, True])
def test_static_clipping_is_not_robust(name: str, C: float, mixed: bool) -> None:
    """Lemma 3.1: n − f equal vectors of norm 2C have no spread, and are not what comes out."""
    n, f = 7, 2
    x = np.full((n, 4), C if C else 1.0)  # norm 2C
    x[n - f :] = matrix("gaussian", f, 0, 4, np.float64)
    server = RobustAggregator(rule(name, f), clip=StaticClip(C), mix=NNM(f) if mixed else None)
    halves = x[0] / 2 if C else np.zeros(4)
    np.testing.assert_allclose(server(x), halves, rtol=1e-5, atol=1e-9)
    ratio, _ = theory.worst_ratio(
        torch.from_numpy(x), torch.from_numpy(server(x)), f, tolerance=1e-6
    )
    assert math.isinf(ratio)
    adaptive = RobustAggregator(rule(name, f), clip=ARC(f))
    np.testing.assert_allclose(adaptive(x), x[0], rtol=1e-5)
