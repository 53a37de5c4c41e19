"""Bounds, convergence, the dissimilarity fit and the search for bad inputs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.robust import CWTM, Average, CWMed, theory
from tests._each import each
from tests.robust._inputs import matrix


def test_coefficients() -> None:
    assert theory.kappa_lower(11, 1) == pytest.approx(1 / 9)
    assert theory.kappa_nnm(11, 1) == pytest.approx(0.8 * (1 + (10 / 9) ** 2))
    assert theory.kappa_arc(0.5, 11, 1) == pytest.approx(0.5 + 2 / 9)
    assert theory.kappa_arc(0.5, 11, 1, zeta=1.0) == pytest.approx(0.5 + 1 / 10)
    assert theory.breakdown_point(0.0) == 0.5
    assert theory.breakdown_point(2.0) == pytest.approx(1 / 6)
    for n in (1, 5, 20):
        assert theory.kappa_lower(n, 0) == theory.kappa_nnm(n, 0) == 0.0
        assert theory.kappa_arc(0.0, n, 0) == 0.0


@given(n=st.integers(1, 200), share=st.floats(0, 0.499))
def test_coefficients_are_in_order(n: int, share: float) -> None:
    """No bound lies below the best possible κ, and ARC at most triples a κ."""
    f = int(share * n)
    lower, mixed = theory.kappa_lower(n, f), theory.kappa_nnm(n, f)
    assert lower <= mixed
    assert mixed <= theory.kappa_arc(mixed, n, f) <= 3 * mixed + 1e-12
    assert mixed <= 16 * f / (n - f) * (1 + f / (n - 2 * f)) ** 2 + 1e-12


def test_lower_bound_on_the_error() -> None:
    assert theory.epsilon_o(10, 2, G=3.0, B=1.0) == pytest.approx(0.25 * 2 * 9 / (10 - 6))
    assert theory.epsilon_o(10, 0, G=3.0, B=1.0) == 0.0
    for f in (3, 4):  # BP = 0.25
        assert math.isinf(theory.epsilon_o(10, f, G=3.0, B=math.sqrt(2)))


def test_learning_rate_and_steps_of_theorem_5_2() -> None:
    steps = theory.required_steps(kappa=0.5, G=2.0, L=3.0, delta_o=7.0)
    assert steps == math.ceil(21 / 2)
    rate = theory.learning_rate(kappa=0.5, G=2.0, L=3.0, delta_o=7.0, steps=steps)
    assert rate == pytest.approx(7 / 2 / steps)
    assert rate <= 1 / 3
    assert theory.learning_rate(0.5, 2.0, 3.0, 7.0, steps=2) == pytest.approx(1 / 3)
    # At γT = Δ_o/κG² the convergence lemma gives 3κG²/(1−κB²).
    bound = theory.error_bound(0.5, 2.0, 1.0, 7.0, learning_rate=rate, steps=steps)
    assert bound == pytest.approx(3 * 0.5 * 4 / (1 - 0.5))
    assert math.isinf(theory.error_bound(1.0, 2.0, 1.0, 7.0, learning_rate=rate, steps=steps))


def test_what_arc_promises() -> None:
    growth = math.exp(3 * 0.2 * 2 / (0.5 * 4))
    assert theory.rho(1.5, G=2.0, B=1.0, L=2.0, delta_o=0.2, xi_o=0.5) == pytest.approx(
        1.5 * growth
    )
    assert theory.psi(G=2.0, B=1.0, rho=4.0) == pytest.approx(640 * 4 * (1 + 4))
    assert theory.error_bound_arc(0.5, G=2.0, B=1.0, rho=1.0) == pytest.approx(2.5 * 5)
    assert theory.error_bound_arc(0.5, G=2.0, B=1.0, rho=9.0) == pytest.approx(2.5 * 8)
    assert theory.error_bound_arc(3.0, G=2.0, B=1.0, rho=1.0) == pytest.approx(15 * 5)


def test_improvement_interval() -> None:
    """f ∈ (n·BP·(1 − 1/Ψ), n·BP), of length n·BP/Ψ."""
    B, G, rho = 10.0, 1.0, 0.01
    Psi = theory.psi(G, B, rho)
    n = 204 * 700
    interval = theory.improvement_interval(n, G, B, rho)
    assert interval.high == pytest.approx(n / 102)
    assert interval.length == pytest.approx(n / 102 / Psi)
    assert list(interval.integers) == [
        f for f in range(1380, 1420) if 1400 * (1 - 1 / Psi) < f < 1400
    ]
    for f in interval.integers:
        assert theory.improvement_factor(n, f, G, B, rho) < 1
    before = interval.integers.start - 1
    assert theory.improvement_factor(n, before, G, B, rho) >= 1
    small = theory.improvement_interval(20, G, B, rho)
    assert small.length < 1
    assert len(small.integers) <= 1


@given(
    xi=st.floats(1e-6, 0.9),
    G=st.floats(0.01, 100),
    B=st.floats(0.05, 20),
    rho=st.floats(0, 100),
)
def test_theorem_5_2_follows_from_its_corollary(xi: float, G: float, B: float, rho: float) -> None:
    """At f/n = (1 − ξ)BP: 5κ(G² + B²ρ²) ≤ ξ Ψ ε_o, by the κ bound of section 2."""
    share = (1 - xi) * theory.breakdown_point(B)
    kappa = 8 * share / (1 - share) * (1 + (1 + share / (1 - 2 * share)) ** 2)
    epsilon = 0.25 * G**2 * share / (1 - (2 + B**2) * share)
    promised = xi * theory.psi(G, B, rho) * epsilon
    assert theory.error_bound_arc(kappa, G, B, rho) <= promised * (1 + 1e-6)


def test_numbers_past_floating_point() -> None:
    rho = theory.rho(1.0, G=0.01, B=5.0, L=100.0, delta_o=10.0, xi_o=0.5)
    assert math.isinf(rho)
    assert math.isinf(theory.psi(1.0, 1.0, rho))
    assert theory.improvement_interval(100, 1.0, 1.0, rho).length == 0.0
    assert len(theory.improvement_interval(100, 1.0, 1.0, rho).integers) == 0
    assert theory.error_bound_arc(0.1, 1.0, 1.0, rho) == pytest.approx(0.5 / 0.9)
    assert theory.error_bound_arc(0.1, 1.0, 0.0, rho) == pytest.approx(0.5)
    assert theory.rho(0.0, G=0.01, B=5.0, L=100.0, delta_o=10.0, xi_o=0.5) == 0.0
    assert math.isinf(theory.error_bound_arc(2.0, 1.0, 1.0, 1e200))


BAD_CALLS = [
    (lambda: theory.kappa_lower(4, 2), "f=2, n=4"),
    (lambda: theory.kappa_nnm(0, 0), "n must be .* got 0"),
    (lambda: theory.kappa_nnm(5, -1), "f must be .* got -1"),
    (lambda: theory.kappa_arc(-0.1, 5, 1), "kappa must be .* got -0.1"),
    (lambda: theory.kappa_arc(0.1, 5, 1, zeta=3.0), "zeta must be .* got 3"),
    (lambda: theory.breakdown_point(-1.0), "B must be .* got -1"),
    (lambda: theory.psi(0.0, 1.0, 1.0), "G must be .* got 0"),
    (lambda: theory.psi(1.0, 0.0, 1.0), "B must be .* got 0"),
    (lambda: theory.rho(1.0, 1.0, 1.0, 1.0, 1.0, xi_o=1.0), "xi_o must be .* got 1"),
    (lambda: theory.required_steps(0.0, 1.0, 1.0, 1.0), "kappa must be .* got 0"),
    (lambda: theory.learning_rate(1.0, 1.0, 1.0, 1.0, steps=0), "steps must be .* got 0"),
    (lambda: theory.improvement_factor(10, 4, 1.0, 1.0, 1.0), "f must be .* got f=4"),
    (lambda: theory.fit_dissimilarity([], []), "one positive length"),
    (lambda: theory.fit_dissimilarity([1.0], [1.0, 2.0]), "one positive length"),
    (lambda: theory.fit_dissimilarity([math.nan], [1.0]), "finite"),
    (lambda: theory.estimate_dissimilarity([torch.ones(3)]), r"shape \(h, d\), got \(3,\)"),
    (lambda: theory.search_kappa(CWMed(), 4, 2), "f=2, n=4"),
    (lambda: theory.worst_ratio(torch.ones(40, 1), torch.ones(1), 9), "n=40, f=9"),
    (lambda: theory.worst_ratio(torch.ones(2, 4, 1), torch.ones(1), 1), r"x must .*\(2, 4, 1\)"),
    (
        lambda: theory.worst_ratio(np.ones((4, 3)), np.ones(4), 1),
        r"output must .*, got \(4,\)",
    ),
    (
        lambda: theory.search_kappa(lambda x: np.median(x, axis=0), 5, 1),
        r"aggregator's output must have shape \(10, 2\), got \(5, 2\)",
    ),
]


@each("call, message", BAD_CALLS)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_arguments_of_the_wrong_type() -> None:
    for call in (lambda: theory.kappa_lower(5.0, 1), lambda: theory.kappa_lower(5, True)):
        with pytest.raises(TypeError, match="must be an int"):
            call()


def test_what_is_no_array_or_server() -> None:
    for call, message in (
        (lambda: theory.worst_ratio("x", torch.ones(1), 1), "theory: x must be a tensor"),
        (lambda: theory.worst_ratio(np.ones((3, 1)), None, 1), "theory: output must be a tensor"),
        (lambda: theory.estimate_dissimilarity(["x"]), "theory: a round of gradients must be"),
        (lambda: theory.damage_bound("cwtm", torch.ones(3, 1), 1), "theory: server must be"),
        (lambda: theory.server_kappa(CWTM, 3, 1), "theory: server must be"),
        (lambda: theory.damage_bound(CWTM(1), "x", 1), "theory: honest must be a tensor"),
        (lambda: theory.damage_bound(CWTM(1), torch.ones(3, 1), 1.0), "theory: f must be an int"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_numbers_and_arrays_of_numpy() -> None:
    """As the rest of the package takes them; a byte's arithmetic must not overflow on the way."""
    assert theory.kappa_nnm(np.int8(120), np.int8(40)) == theory.kappa_nnm(120, 40)
    x = matrix("gaussian", 6, 1, 3, np.float64)
    tensor = torch.from_numpy(x)
    expected = theory.worst_ratio(tensor, tensor.mean(0), 1)
    assert theory.worst_ratio(x, x.mean(0), np.int64(1)) == expected
    rounds = np.stack([matrix("gaussian", 6, 1, 3, np.float64, seed=s) for s in range(4)])
    fit = theory.estimate_dissimilarity(torch.from_numpy(rounds))
    for seen in (rounds, list(rounds), iter(rounds)):
        assert theory.estimate_dissimilarity(seen) == fit
    by_numpy = theory.search_kappa(lambda x: x.numpy().mean(-2), np.int64(5), np.int64(1), steps=3)
    by_torch = theory.search_kappa(lambda x: x.mean(-2), 5, 1, steps=3)
    assert by_numpy.ratio == pytest.approx(by_torch.ratio)


# --- dissimilarity -------------------------------------------------------------------------------

points = st.lists(
    st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)).map(lambda p: (round(p[0], 3), round(p[1], 3))),
    min_size=1,
    max_size=12,
)


@given(rounds=points)
def test_dissimilarity_covers_every_round_and_cannot_be_tightened(rounds: list) -> None:
    a, v = map(np.array, zip(*rounds, strict=True))
    fit = theory.fit_dissimilarity(a, v)
    size = max(1.0, v.max())
    gaps = fit.G**2 + fit.B**2 * a - v
    assert gaps.min() >= -1e-9 * size
    assert fit.slack == pytest.approx(max(0.0, gaps.mean()), abs=1e-9 * size)
    for G2, B2 in [*fit.frontier, (fit.G**2, fit.B**2)]:
        assert (G2 + B2 * a - v).min() >= -1e-9 * size
        # On the frontier neither can shrink: some round is touched, unless both are 0.
        assert (G2 + B2 * a - v).min() <= 1e-6 * size or (G2 == 0 and B2 == 0)
    # No other line above all rounds has less average slack.
    for B2 in np.linspace(0, 4 * fit.B**2 + 1, 50):
        G2 = max(0.0, float((v - B2 * a).max()))
        assert float((G2 + B2 * a - v).mean()) >= fit.slack - 1e-9 * size


def test_dissimilarity_of_known_problems() -> None:
    a = np.linspace(0.1, 5, 40)
    fit = theory.fit_dissimilarity(a, 2.0 + 0.5 * a)
    assert pytest.approx((math.sqrt(2), math.sqrt(0.5), 0.0), abs=1e-7) == (fit.G, fit.B, fit.slack)
    equal = theory.fit_dissimilarity(a, np.zeros(40))
    assert (equal.G, equal.B) == (0.0, 0.0)
    single = theory.fit_dissimilarity([4.0], [2.0])
    assert single.frontier == ((2.0, 0.0), (0.0, 0.5))
    fixed = theory.fit_dissimilarity(a, 2.0 + 0.5 * a, B=0.0)
    assert fixed.B == 0.0
    assert pytest.approx(math.sqrt(4.5)) == fixed.G


def test_dissimilarity_from_gradients() -> None:
    """Quadratics ½‖θ − c_i‖²: v does not depend on θ, so G² = v and B = 0."""
    centres = torch.from_numpy(matrix("gaussian", 6, 0, 4, np.float64))
    models = torch.from_numpy(matrix("heavy", 15, 0, 4, np.float64))
    gradients = models.unsqueeze(1) - centres
    fit = theory.estimate_dissimilarity(gradients)
    spread = float((centres - centres.mean(0)).square().sum(1).mean())
    assert pytest.approx(math.sqrt(spread), rel=1e-6) == fit.G
    assert pytest.approx(0.0, abs=1e-5) == fit.B
    assert fit.rounds == 15
    assert fit.breakdown_point == pytest.approx(0.5)
    again = theory.estimate_dissimilarity(g.float() for g in gradients)
    assert pytest.approx(fit.G, rel=1e-4) == again.G


@each("scale", [1e-30, 1e-8, 1e12])
def test_dissimilarity_on_any_scale(scale: float) -> None:
    a, v = np.array([0.3, 1.0, 2.0]), np.array([1.0, 3.0, 3.5])
    fit, scaled = theory.fit_dissimilarity(a, v), theory.fit_dissimilarity(scale * a, scale * v)
    assert pytest.approx(fit.B) == scaled.B
    assert pytest.approx(fit.G * math.sqrt(scale)) == scaled.G


# --- search --------------------------------------------------------------------------------------


def test_worst_ratio_by_hand() -> None:
    """S = {0, 2}: mean 1, mean squared deviation 1; the output 3 is 2 away."""
    x = torch.tensor([[0.0], [3.0], [2.0]])
    ratio, honest = theory.worst_ratio(x, torch.tensor([3.0]), f=1)
    assert ratio == pytest.approx(4.0)
    assert honest == (0, 2)


def test_ratios_without_spread() -> None:
    x = torch.zeros(5, 2)
    x[4] = 1.0
    assert theory.worst_ratio(x, torch.zeros(2), f=1)[0] == pytest.approx(1 / 3)
    assert math.isinf(theory.worst_ratio(x, torch.full((2,), 0.1), f=1)[0])
    assert theory.worst_ratio(torch.ones(5, 2), torch.ones(2), f=1)[0] == 0.0
    assert theory.worst_ratio(torch.zeros(1, 2), torch.zeros(2), f=0)[0] == 0.0


@each("n, f, kappa", [(3, 1, 1.0), (5, 2, 2.0), (9, 2, 4 / 3)])
def test_search_finds_the_median_s_worst_case(n: int, f: int, kappa: float) -> None:
    """In one dimension the worst ratio of a median is known: S = m values 0 and the rest 1."""
    found = theory.search_kappa(CWMed(), n, f, d=1, steps=40)
    assert found.ratio == pytest.approx(kappa, rel=0.02)
    assert found.x.shape == (n, 1)
    assert len(found.honest) == n - f
    again, _ = theory.worst_ratio(found.x, CWMed()(found.x), f)
    assert again == pytest.approx(found.ratio, rel=1e-6)
    assert found.evaluations > 0


def test_search_repeats_itself_and_improves_on_random_inputs() -> None:
    first, second = (theory.search_kappa(CWTM(2), 7, 2, d=3, steps=10, seed=4) for _ in range(2))
    assert first.ratio == second.ratio
    assert torch.equal(first.x, second.x)
    start = theory.search_kappa(CWTM(2), 7, 2, d=3, steps=0, seed=4)
    assert first.ratio > start.ratio


def test_search_without_byzantine_workers() -> None:
    assert theory.search_kappa(Average(), 4, 0).ratio == 0.0
