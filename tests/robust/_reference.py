"""What each clip, mix and rule is, written as simply as possible: float64, loops and sorts.

Nothing here is fast and nothing here is shared with ``lit_byz``. A rule that selects can meet exact
ties; it gives the list of every answer that its definition allows, or an interval of them.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Between:
    """Any answer that lies between two others in each coordinate."""

    low: Array
    high: Array


Answer = Array | Between

# Scores closer than this, relatively, are a tie: they differ by the rounding of float64.
TIE = 1e-9
# Distances in one coordinate closer than this, relative to its values, are a tie in float32.
COORDINATE_TIE = 1e-6


def exact(x: object) -> Array:
    return np.array(x, dtype=np.float64)


def norms(x: Array) -> Array:
    """Norms that neither overflow nor underflow."""
    largest = np.maximum(np.abs(x).max(axis=1), 1e-300)
    return largest * np.sqrt(((x / largest[:, None]) ** 2).sum(axis=1))


# --- clips ---------------------------------------------------------------------------------------


def clip_at(x: Array, C: float) -> Array:
    clipped = []
    for row, norm in zip(x, norms(x), strict=True):
        clipped.append(row * (C / norm) if norm > C else row)
    return np.stack(clipped)


def arc_count(n: int, f: int) -> int:
    """How many vectors ARC clips at most."""
    return (2 * f * (n - f)) // n


def arc_threshold(x: Array, f: int) -> float:
    descending = sorted(norms(x), reverse=True)
    return float(descending[arc_count(len(x), f)])


def arc(x: Array, f: int) -> Array:
    return clip_at(x, arc_threshold(x, f))


# --- mixes ---------------------------------------------------------------------------------------


def squared_distances(x: Array) -> Array:
    """Between all rows, by their differences."""
    return np.array([((x - row) ** 2).sum(axis=1) for row in x])


def neighbours(x: Array, f: int) -> list[list[int]]:
    """For each row its n − f nearest, itself first; of equally near ones, the first."""
    found = []
    for i, row in enumerate(squared_distances(x)):
        order = sorted(range(len(x)), key=lambda j: (j != i, row[j]))
        found.append(order[: len(x) - f])
    return found


def neighbour_gap(x: Array, f: int) -> float:
    """The least relative distance between the last neighbour that counts and the first that does
    not, over all rows: how far NNM is from a tie."""
    if f == 0:
        return math.inf
    gap = math.inf
    for row in squared_distances(x):
        ordered = np.sort(row)
        inside, outside = ordered[len(x) - f - 1], ordered[len(x) - f]
        gap = min(gap, (outside - inside) / outside if outside > 0 else 0.0)
    return gap


def nnm(x: Array, f: int) -> Array:
    return np.stack([x[chosen].mean(axis=0) for chosen in neighbours(x, f)])


# --- rules: coordinates --------------------------------------------------------------------------


def average(x: Array) -> list[Array]:
    return [x.mean(axis=0)]


def cwtm(x: Array, f: int) -> list[Array]:
    return [np.sort(x, axis=0)[f : len(x) - f].mean(axis=0)]


def median(x: Array) -> Array:
    ordered, n = np.sort(x, axis=0), len(x)
    # Halved before they are added: the sum of two large values may overflow.
    return ordered[(n - 1) // 2] / 2 + ordered[n // 2] / 2


def cwmed(x: Array) -> list[Array]:
    return [median(x)]


def meamed(x: Array, f: int) -> list[Answer]:
    """Values on either side of the median may be equally near: the lower, the upper or both."""
    keep, centre = len(x) - f, median(x)
    low, high = np.empty(x.shape[1]), np.empty(x.shape[1])
    for j, column in enumerate(x.T):
        tie = COORDINATE_TIE * np.abs(column).max()
        distances = np.abs(column - centre[j])
        last = np.sort(distances)[keep - 1]
        sure = sorted(column[distances < last - tie])
        tied = sorted(column[np.abs(distances - last) <= tie])
        room = keep - len(sure)
        low[j] = np.mean([*sure, *tied[:room]])
        high[j] = np.mean([*sure, *tied[len(tied) - room :]])
    return [Between(low, high)]


# --- rules: geometry -----------------------------------------------------------------------------


def geometric_median(x: Array, nu: float, iterations: int) -> list[Array]:
    z = np.zeros(x.shape[1])
    for _ in range(iterations):
        weights = 1 / np.maximum(nu, norms(x - z))
        z = (weights[:, None] * x).sum(axis=0) / weights.sum()
    return [z]


def krum_scores(x: Array, f: int) -> Array:
    distances = squared_distances(x)
    scores = []
    for i in range(len(x)):
        others = np.sort(np.delete(distances[i], i))
        scores.append(others[: len(x) - f - 1].sum())
    return np.array(scores)


def krum(x: Array, f: int) -> list[Array]:
    scores = krum_scores(x, f)
    return [row for row, score in zip(x, scores, strict=True) if score <= scores.min() * (1 + TIE)]


def multi_krum(x: Array, f: int) -> list[Array]:
    scores, count = krum_scores(x, f), len(x) - f
    last = np.sort(scores)[count - 1]
    sure = [i for i, score in enumerate(scores) if score < last * (1 - TIE)]
    tied = [i for i, score in enumerate(scores) if abs(score - last) <= last * TIE]
    choices = itertools.combinations(tied, count - len(sure))
    return [x[[*sure, *chosen]].mean(axis=0) for chosen in itertools.islice(choices, 1000)]


def mda(x: Array, f: int) -> list[Array]:
    distances = squared_distances(x)
    diameters = {
        chosen: distances[np.ix_(chosen, chosen)].max()
        for chosen in itertools.combinations(range(len(x)), len(x) - f)
    }
    least = min(diameters.values())
    return [
        x[list(chosen)].mean(axis=0)
        for chosen, diameter in diameters.items()
        if diameter <= least * (1 + TIE)
    ]


def monna(x: Array, f: int, pivot: int = 0) -> list[Array]:
    distances, count = ((x - x[pivot]) ** 2).sum(axis=1), len(x) - f
    others = [i for i in range(len(x)) if i != pivot]
    last = np.sort(distances[others])[count - 2] if count > 1 else 0.0
    sure = [pivot, *(i for i in others if distances[i] < last * (1 - TIE))]
    tied = [i for i in others if abs(distances[i] - last) <= last * TIE]
    choices = itertools.combinations(tied, count - len(sure))
    return [x[[*sure, *chosen]].mean(axis=0) for chosen in itertools.islice(choices, 1000)]


def main_variance(x: Array) -> float:
    """The largest eigenvalue of the covariance, from the singular values of the centred rows."""
    moved = x - x[0]  # which loses nothing where rows are nearly the same
    return float(np.linalg.svd(moved - moved.mean(axis=0), compute_uv=False)[0] ** 2 / len(x))


def smea(x: Array, f: int) -> list[Array]:
    variances = [main_variance(x[chosen]) for chosen in subsets(len(x), f)]
    return [
        x[chosen].mean(axis=0)
        for chosen, variance in zip(subsets(len(x), f), variances, strict=True)
        if variance <= min(variances) * (1 + TIE)
    ]


def centered_clipping(x: Array, tau: float, iterations: int) -> list[Array]:
    v = np.zeros(x.shape[1])
    for _ in range(iterations):
        v = v + clip_at(x - v, tau).mean(axis=0)
    return [v]


def caf(x: Array, f: int) -> list[Array]:
    """Weights start at 1. While they add up to more than n − 2f, each loses the share
    τ_i / max τ of itself, τ_i the squared component of x_i − μ along the main direction of the
    weighted covariance, the maximum over weights that are not 0 (up to rounding). The answer is the
    weighted mean μ with the least main eigenvalue."""
    n = len(x)
    weights, best, least = np.ones(n), x.mean(axis=0), math.inf
    while weights.sum() > n - 2 * f:
        mean = (weights[:, None] * x).sum(axis=0) / weights.sum()
        centred = x - mean
        # The covariance (d, d) has the eigenvalues of this (n, n) matrix.
        root = np.sqrt(weights / weights.sum())[:, None] * centred
        values, vectors = np.linalg.eigh(root @ root.T)
        if values[-1] < least:
            best, least = mean, values[-1]
        direction = root.T @ vectors[:, -1]
        if values[-1] <= 0 or not direction.any():
            break
        components = (centred @ (direction / norms(direction[None])[0])) ** 2
        largest = components[weights > 0].max()
        weights = weights * (1 - np.minimum(1, components / largest))
        weights[weights < TIE] = 0
    return [best]


# --- compositions --------------------------------------------------------------------------------


def bound_output(output: Array, x: Array) -> Array:
    """F†: the output clipped at the largest norm among the inputs of F."""
    return clip_at(output[None], float(norms(x).max()))[0]


def subsets(n: int, f: int) -> list[list[int]]:
    """Every set S of n − f rows."""
    return [list(chosen) for chosen in itertools.combinations(range(n), n - f)]
