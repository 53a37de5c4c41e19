"""Attacks written as simply as possible: NumPy, float64, loops."""

import numpy as np

Array = np.ndarray


def dense_factors(low: float, high: float, points: int) -> Array:
    """Evenly spaced up to about 1/4, by equal ratios from there."""
    places = np.linspace(np.arcsinh(2 * low), np.arcsinh(2 * high), points)
    return np.sinh(places) / 2


def disguised(x: Array, perturbation: str, kind: str) -> tuple[Array, float]:
    """Min-Max or Min-Sum by bisection: the unit direction p and the largest γ that is allowed."""
    mean = x.mean(axis=0)
    p = {"std": -x.std(axis=0, ddof=1), "unit": -mean, "sign": -np.sign(mean)}[perturbation]
    p = p / np.linalg.norm(p)
    among = np.array([[((a - b) ** 2).sum() for b in x] for a in x])
    summed = {"max": np.max, "sum": np.sum}[kind]
    limit = max(summed(row) for row in among)

    def allowed(gamma: float) -> bool:
        return bool(summed([((mean + gamma * p - a) ** 2).sum() for a in x]) <= limit)

    low, high = 0.0, 1.0
    while allowed(high):
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return p, low


def mimic(steps: list[Array], start: Array, warmup: int | None) -> list[int]:
    """The target at every step."""
    z, centre, target, targets = start.astype(np.float64), np.zeros(len(start)), 0, []
    for t, x in enumerate(steps):
        if warmup is None or t < warmup:
            centre = (t * centre + x.mean(axis=0)) / (t + 1)
            c = np.zeros(len(z))
            for row in x:
                c += ((row - centre) @ z) * (row - centre)
            z = (t * z + c / np.linalg.norm(c)) / (t + 1)
            z /= np.linalg.norm(z)
            target = max(range(len(x)), key=lambda i: float(x[i] @ z))
        targets.append(target)
    return targets
