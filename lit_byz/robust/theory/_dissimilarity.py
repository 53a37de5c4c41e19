"""The dissimilarity (G, B) of honest gradients, estimated from gradients that were seen.

Losses are (G, B)-dissimilar when, at every model θ, v(θ) ≤ G² + B² a(θ), with a = ‖mean of the
honest gradients‖² and v = the mean of their squared distances from that mean. Every round gives one
pair (a, v). The pairs (G², B²) that no other can improve on are the lines that touch the upper
concave hull of these points from above.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lit_byz.robust._inputs import as_tensor
from lit_byz.robust.theory._bounds import OWNER, breakdown_point, check_not_negative

Gradients = Tensor | np.ndarray | Iterable[Tensor | np.ndarray]


@dataclass(frozen=True)
class Dissimilarity:
    """An estimate of (G, B), and how tightly it wraps the rounds it comes from."""

    G: float
    B: float
    slack: float
    """Average of G² + B² a − v over the rounds: 0 if every round lies on the line."""
    rounds: int
    frontier: tuple[tuple[float, float], ...]
    """The corners (G², B²) of the set of best pairs, by growing B²; mixtures of neighbours belong
    to it too."""

    @property
    def breakdown_point(self) -> float:
        return breakdown_point(self.B)


def dissimilarity_pairs(gradients: Gradients) -> tuple[np.ndarray, np.ndarray]:
    """(a, v) for every round; ``gradients`` is (rounds, h, d), or an iterable of (h, d).

    >>> a, v = dissimilarity_pairs([torch.tensor([[0.0, 1.0], [2.0, 1.0]])])
    >>> float(a[0]), float(v[0])
    (2.0, 1.0)
    """
    squared_means, deviations = [], []
    for honest in gradients:
        exact = as_tensor(OWNER, honest, "a round of gradients").to(torch.float64)
        if exact.ndim != 2:
            shape = tuple(exact.shape)
            raise ValueError(f"{OWNER}: a round of gradients must have shape (h, d), got {shape}")
        mean = exact.mean(dim=0)
        squared_means.append(float(mean.square().sum()))
        deviations.append(float((exact - mean).square().sum(dim=1).mean()))
    return np.array(squared_means), np.array(deviations)


def estimate_dissimilarity(gradients: Gradients, B: float | None = None) -> Dissimilarity:
    """(G, B) from honest gradients of several rounds; see :func:`fit_dissimilarity`.

    Full-batch gradients estimate what the theory speaks of. Stochastic ones add their sampling
    noise to v. Momentums are something else again.
    """
    return fit_dissimilarity(*dissimilarity_pairs(gradients), B=B)


def fit_dissimilarity(
    squared_means: Sequence[float] | np.ndarray,
    deviations: Sequence[float] | np.ndarray,
    B: float | None = None,
) -> Dissimilarity:
    """The smallest G² and B² consistent with the observed pairs (a, v).

    Many pairs (G², B²) are consistent and none is smallest in both. Of those on the frontier, this
    takes the one with the least average slack G² + B² a − v (a linear programme in two unknowns),
    and the least B² if several have it. With ``B`` given, G is the smallest that goes with it.
    The rounds seen are not every θ: the true G and B are at least as large as some point of the
    frontier.

    >>> fit_dissimilarity([0.0, 1.0, 2.0], [1.0, 3.0, 4.0]).frontier
    ((4.0, 0.0), (2.0, 1.0), (1.0, 2.0))
    """
    a = np.asarray(squared_means, dtype=np.float64)
    v = np.asarray(deviations, dtype=np.float64)
    if a.ndim != 1 or a.shape != v.shape or a.size == 0:
        raise ValueError(
            f"{OWNER}: squared_means and deviations must be sequences of one positive length, "
            f"got shapes {a.shape} and {v.shape}"
        )
    if not (np.isfinite(a).all() and np.isfinite(v).all() and (a >= 0).all() and (v >= 0).all()):
        raise ValueError(f"{OWNER}: squared_means and deviations must be finite and >= 0")
    # The fit is done in units of the largest of each, so that no scale is lost to rounding.
    unit_a, unit_v = float(a.max()) or 1.0, float(v.max()) or 1.0
    points = np.stack([a / unit_a, v / unit_v], axis=1)
    unit_slope = unit_v / unit_a
    corners = [(_intercept(points, slope), slope) for slope in _slopes(points)]
    if B is None:
        centre = float(points[:, 0].mean())
        G2, B2 = min(corners, key=lambda corner: (corner[0] + corner[1] * centre, corner[1]))
    else:
        check_not_negative(B=B)
        B2 = B**2 / unit_slope
        G2 = _intercept(points, B2)
    slack = float((G2 + B2 * points[:, 0] - points[:, 1]).mean()) * unit_v
    return Dissimilarity(
        G=math.sqrt(G2 * unit_v),
        B=math.sqrt(B2 * unit_slope) if B is None else B,
        slack=max(0.0, slack),
        rounds=a.size,
        frontier=tuple((g * unit_v, b * unit_slope) for g, b in corners),
    )


def _intercept(points: np.ndarray, slope: float) -> float:
    """The smallest G² ≥ 0 that goes with B² = slope."""
    return max(0.0, float((points[:, 1] - slope * points[:, 0]).max()))


def _slopes(points: np.ndarray) -> list[float]:
    """The values of B² at the corners of the frontier, growing from 0.

    They are the slopes of the hull's edges that rise, read from right to left, up to the one whose
    line passes below the origin; there G² = 0 and the slope of the line through the origin ends
    the frontier.
    """
    slopes = [0.0]
    hull = _upper_hull(points)
    for left, right in zip(hull[-2::-1], hull[:0:-1], strict=True):
        slope = (right[1] - left[1]) / (right[0] - left[0])
        if slope <= 0 or left[1] <= slope * left[0]:
            continue
        slopes.append(slope)
    positive = points[points[:, 0] > 0]
    if (points[points[:, 0] == 0, 1] == 0).all() and len(positive):
        steepest = float((positive[:, 1] / positive[:, 0]).max())
        if steepest > slopes[-1]:
            slopes.append(steepest)
    return slopes


def _upper_hull(points: np.ndarray) -> list[tuple[float, float]]:
    """Corners of the upper concave hull, from left to right (Andrew's monotone chain)."""
    highest: dict[float, float] = {}
    for x, y in points.tolist():
        highest[x] = max(y, highest.get(x, -math.inf))
    hull: list[tuple[float, float]] = []
    for x, y in sorted(highest.items()):
        while len(hull) >= 2:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull
