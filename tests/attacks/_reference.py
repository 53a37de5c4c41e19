"""Attacks written as simply as possible: NumPy, float64, loops."""

import numpy as np

Array = np.ndarray


def dense_factors(low: float, high: float, points: int) -> Array:
    """Evenly spaced up to about 1/4, by equal ratios from there."""
    places = np.linspace(np.arcsinh(2 * low), np.arcsinh(2 * high), points)
    return np.sinh(places) / 2
