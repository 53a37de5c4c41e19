"""Matrices that rules are tried on: ordinary ones, hostile ones and degenerate ones."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Family = Callable[[np.random.Generator, int, int, int], Array]


def gaussian(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    return rng.normal(size=(n, d)) + 0.5


def clustered(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """Nearly identical vectors of norm 1e6."""
    centre = rng.normal(size=d)
    return 1e6 * centre / np.linalg.norm(centre) + rng.normal(size=(n, d))


def flipped(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """Honest vectors around a mean, and f copies of its opposite, ten times as long."""
    x = rng.normal(size=(n, d)) + rng.normal(size=d)
    x[n - f :] = -10 * x[: n - f].mean(axis=0)
    return rng.permutation(x)


def outliers(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """Honest vectors, and f others a million times longer."""
    x = rng.normal(size=(n, d)) + 1.0
    x[n - f :] *= 1e6
    return rng.permutation(x)


def little(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """f copies of the honest mean moved by 1.5 standard deviations in every coordinate."""
    x = rng.normal(size=(n, d)) + 0.5
    honest = x[: n - f]
    x[n - f :] = honest.mean(axis=0) + 1.5 * honest.std(axis=0)
    return rng.permutation(x)


def unequal(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """Norms from 1e-3 to 1e3."""
    return rng.permutation(rng.normal(size=(n, d)) * np.logspace(-3, 3, n)[:, None])


def heavy(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """Coordinates without a variance."""
    return rng.standard_t(df=1.5, size=(n, d))


def sparse(rng: np.random.Generator, n: int, f: int, d: int) -> Array:
    """Mostly zeros, with ties in every coordinate."""
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3) + (np.arange(d) == 0)


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (gaussian, clustered, flipped, outliers, little, unequal, heavy, sparse)
}

# (n, f) for n from 3 to 60: odd and even, powers of two and their neighbours, f from 0 to the most.
SIZES = [
    *((3, 1), (4, 1), (5, 0), (5, 2), (6, 1), (7, 3), (8, 2), (9, 1), (10, 4), (11, 1), (11, 5)),
    *((15, 3), (16, 7), (17, 1), (20, 5), (25, 6), (31, 15), (32, 8), (33, 2), (39, 9), (48, 0)),
    *((60, 1), (60, 29)),
]

SCALES = [0.0, 1e-30, 1e-15, 1e-6, 1.0, 1e6, 1e15]


def matrix(family: str, n: int, f: int, d: int, dtype: type = np.float32, seed: int = 0) -> Array:
    """One matrix of a family, the same at every call."""
    rng = np.random.default_rng([seed, n, f, d, *family.encode()])
    return FAMILIES[family](rng, n, f, d).astype(dtype)


def tagged_cluster(n: int, d: int, spread: int, dtype: type, seed: int = 0) -> Array:
    """Nearly identical vectors of norm about 1e6 that differ by whole units in the last place.

    The first d coordinates are a centre plus up to ``spread`` such units. The last n coordinates
    are a one-hot tag, small enough to change no order of distances: it says which rows went into
    an average.
    """
    rng = np.random.default_rng([seed, n, d, spread])
    magnitude = 1e6 / np.sqrt(d)
    unit = float(np.spacing(dtype(2 * magnitude)))
    centre = np.round(magnitude * rng.choice([-1.0, 1.0], size=d) / unit) * unit
    offsets = rng.integers(-spread, spread + 1, size=(n, d)) * unit
    tags = unit * np.eye(n)
    return np.concatenate([centre + offsets, tags], axis=1).astype(dtype)
