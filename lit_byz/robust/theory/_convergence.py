"""What Robust-DGD reaches, with and without ARC: the lemmas of section 2 and Theorem 5.2.

In what belongs to Theorem 5.2, ``kappa`` is the coefficient of the rule before ARC: the theorem
already contains what ARC adds to it.
"""

import math
from dataclasses import dataclass

from lit_byz._checks import check_integer
from lit_byz.robust.theory._bounds import (
    OWNER,
    breakdown_point,
    check_not_negative,
    check_positive,
    check_workers,
)


def epsilon_o(n: int, f: int, G: float, B: float) -> float:
    """The error ‖∇L‖² that no algorithm can promise to beat: ¼ · G²(f/n) / (1 − (2+B²)(f/n)).

    Infinite from the breakdown point on.
    """
    n, f = check_workers(n, f)
    check_not_negative(G=G, B=B)
    room = n - (2 + B**2) * f
    return f * G**2 / (4 * room) if room > 0 else math.inf


def error_bound(
    kappa: float, G: float, B: float, delta_o: float, learning_rate: float, steps: int
) -> float:
    """Average ‖∇L‖² of Robust-DGD: 2Δ_o/((1−κB²)γT) + κG²/(1−κB²), for γ ≤ 1/L.

    Infinite where κB² ≥ 1. With ARC, pass the κ of the composition (``kappa_arc``).
    """
    check_not_negative(kappa=kappa, G=G, B=B, delta_o=delta_o)
    check_positive(learning_rate=learning_rate)
    check_integer(OWNER, "steps", steps, minimum=1)
    margin = 1 - kappa * B**2
    if margin <= 0:
        return math.inf
    return (2 * delta_o / (learning_rate * steps) + kappa * G**2) / margin


def required_steps(kappa: float, G: float, L: float, delta_o: float) -> int:
    """The number of steps T of Theorem 5.2: ⌈Δ_o L / (κG²)⌉, at least one."""
    _check_run(kappa, G, L, delta_o)
    return max(1, math.ceil(delta_o * L / (kappa * G**2)))


def learning_rate(kappa: float, G: float, L: float, delta_o: float, steps: int) -> float:
    """The learning rate γ of Theorem 5.2: min(Δ_o / (κG²T), 1/L)."""
    _check_run(kappa, G, L, delta_o)
    check_integer(OWNER, "steps", steps, minimum=1)
    return min(delta_o / (kappa * G**2 * steps), 1 / L)


def rho(zeta: float, G: float, B: float, L: float, delta_o: float, xi_o: float) -> float:
    """A bound on every honest gradient along the run: exp((2+B²)Δ_o L / ((1−ξ_o)G²)) · ζ.

    ``zeta`` bounds the honest gradients at the initial model. The exponential soon passes the
    range of floating point; the value is then infinite (or 0, where ``zeta`` is 0).
    """
    check_not_negative(zeta=zeta, B=B, L=L, delta_o=delta_o)
    check_positive(G=G, xi_o=xi_o)
    if xi_o >= 1:
        raise ValueError(f"{OWNER}: xi_o must be a number below 1, got {xi_o}")
    if zeta == 0:
        return 0.0
    exponent = (2 + B**2) * delta_o * L / ((1 - xi_o) * G**2)
    try:
        return math.exp(exponent) * zeta
    except OverflowError:
        return math.inf


def psi(G: float, B: float, rho: float) -> float:
    """Ψ(G, B, ρ) = 640 (1 + 1/B²)² (1 + B²ρ²/G²), for B > 0 and G > 0."""
    check_positive(G=G, B=B)
    check_not_negative(rho=rho)
    ratio = B * rho / G
    return 640 * (1 + 1 / B**2) ** 2 * (1 + ratio * ratio)


def improvement_factor(n: int, f: int, G: float, B: float, rho: float) -> float:
    """The factor υ = Ψ · (1 − (f/n)/BP) of ε_o that Robust-DGD reaches with ARC, for f/n < BP.

    Below 1, ARC breaks the lower bound that holds for arbitrary initial models.
    """
    n, f = check_workers(n, f)
    room = 1 - f / n / breakdown_point(B)
    if room <= 0:
        bound = n * breakdown_point(B)
        raise ValueError(f"{OWNER}: f must be below the breakdown point, {bound:g}, got f={f}")
    return psi(G, B, rho) * room


@dataclass(frozen=True)
class ImprovementInterval:
    """The open interval of real f in which ARC improves on the lower bound."""

    low: float
    high: float

    @property
    def length(self) -> float:
        return self.high - self.low

    @property
    def integers(self) -> range:
        """The numbers of Byzantine workers inside: often none, as Ψ is at least 640."""
        return range(math.floor(self.low) + 1, max(math.ceil(self.high), math.floor(self.low) + 1))


def improvement_interval(n: int, G: float, B: float, rho: float) -> ImprovementInterval:
    """All f with n·BP·(1 − 1/Ψ) < f < n·BP, where Theorem 5.2 beats the lower bound."""
    n, _ = check_workers(n, 0)
    high = n * breakdown_point(B)
    return ImprovementInterval(low=high * (1 - 1 / psi(G, B, rho)), high=high)


def error_bound_arc(kappa: float, G: float, B: float, rho: float) -> float:
    """‖∇L‖² of Robust-DGD with ARC after ``required_steps``: 5κ min(G² + B²ρ², G²/(1−κB²)).

    The second term counts only where κB² < 1. The first one holds up to f < n/2: bounded initial
    gradients move the breakdown point from 1/(2+B²) to 1/2.
    """
    check_not_negative(kappa=kappa, G=G, B=B, rho=rho)
    margin = 1 - kappa * B**2
    spread = B * rho if B else 0.0
    from_start = G**2 + spread * spread
    anywhere = G**2 / margin if margin > 0 else math.inf
    best = min(from_start, anywhere)
    return 5 * kappa * best if kappa else 0.0


def _check_run(kappa: float, G: float, L: float, delta_o: float) -> None:
    check_positive(kappa=kappa, G=G, L=L)
    check_not_negative(delta_o=delta_o)
