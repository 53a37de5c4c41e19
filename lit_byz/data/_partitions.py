"""How the training points are dealt to the honest workers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lit_byz._checks import check_integer, check_number
from lit_byz._streams import Stream, numpy_generator
from lit_byz.errors import BadRequest
from lit_byz.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

PARTITIONS = Registry(
    "partition",
    "lit_byz.data.Partition",
    "from lit_byz.data import Partition\n"
    "class MyPartition(Partition):\n"
    "    def deal(self, labels, workers, rng): return [range(i, len(labels), workers) for i in "
    "range(workers)]",
)


class Partition(ABC):
    """Deals every training point to exactly one honest worker, by the labels and the seed alone.

    A subclass deals in :meth:`deal`. A dealing that leaves a worker without any point is drawn
    again, up to ``redraws`` times.
    """

    to_write: ClassVar[tuple[str, ...]] = ("deal",)
    example: ClassVar[str] = PARTITIONS.example
    redraws: int = 0

    @abstractmethod
    def deal(
        self, labels: np.ndarray, workers: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        """For each worker the indices of its points, in any order."""

    def __call__(self, labels: "np.ndarray | Tensor", workers: int, seed: int) -> list[np.ndarray]:
        """For each worker the sorted indices of its points (int64)."""
        check_integer(self, "workers", workers, 1)
        check_integer(self, "seed", seed, 0)
        known = np.asarray(labels)
        if len(known) < workers:
            raise BadRequest(
                f"{type(self).__name__}: {len(known)} points cannot be dealt to {workers} workers; "
                "each needs at least one"
            )
        for attempt in range(self.redraws + 1):
            rng = numpy_generator(seed, Stream.PARTITIONS, attempt)
            parts = [np.sort(part) for part in self.deal(known, workers, rng)]
            empty = [worker for worker, part in enumerate(parts) if not len(part)]
            if not empty:
                return parts
        raise BadRequest(
            f"{self!r} left {'worker' if len(empty) == 1 else 'workers'} "
            f"{', '.join(map(str, empty))} of {workers} without data at seed {seed}, in each of "
            f"{self.redraws + 1} draws; allow more redraws, fewer workers or less heterogeneity"
        )

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


@PARTITIONS.register("iid")
class IID(Partition):
    """Points in random order, cut into runs of equal length.

    >>> [len(part) for part in IID()(np.zeros(7), workers=3, seed=1)]
    [3, 2, 2]
    """

    def deal(
        self, labels: np.ndarray, workers: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        return np.array_split(rng.permutation(len(labels)), workers)


@PARTITIONS.register("extreme")
class Extreme(Partition):
    """Points sorted by label, cut into runs of equal length; the seed plays no part.

    >>> [part.tolist() for part in Extreme()(np.array([1, 0, 1, 0]), workers=2, seed=1)]
    [[1, 3], [0, 2]]
    """

    def deal(
        self, labels: np.ndarray, workers: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        return np.array_split(np.argsort(labels, kind="stable"), workers)


@PARTITIONS.register("dirichlet")
class Dirichlet(Partition):
    """Each class is dealt in proportions over the workers drawn from Dirichlet(α, …, α).

    The smaller α, the more the workers differ (Hsu, Qi, Brown, 2019).
    """

    def __init__(self, alpha: float = 0.1, redraws: int = 100) -> None:
        check_number(self, "alpha", alpha, 0, above=True)
        check_integer(self, "redraws", redraws, 0)
        self.alpha = alpha
        self.redraws = redraws

    def deal(
        self, labels: np.ndarray, workers: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        parts: list[list[np.ndarray]] = [[] for _ in range(workers)]
        for label in np.unique(labels):
            points = rng.permutation(np.flatnonzero(labels == label))
            shares = rng.dirichlet(np.full(workers, self.alpha))
            # Rounding the running sum, not each share, deals every point exactly once.
            cuts = np.rint(np.cumsum(shares)[:-1] * len(points)).astype(np.int64)
            for part, run in zip(parts, np.split(points, cuts), strict=True):
                part.append(run)
        return [np.concatenate(part) for part in parts]


@PARTITIONS.register("gamma")
class Gamma(Partition):
    """A share γ of the points, drawn at random, is dealt as ``iid``, the rest as ``extreme``.

    γ = 1 is ``iid`` and γ = 0 is ``extreme``. Workers have equally many points.
    """

    def __init__(self, gamma: float = 0.5) -> None:
        check_number(self, "gamma", gamma, 0, 1)
        self.gamma = gamma

    def deal(
        self, labels: np.ndarray, workers: int, rng: np.random.Generator
    ) -> Iterable[np.ndarray]:
        order = rng.permutation(len(labels))
        mixed, rest = np.split(order, [round(self.gamma * len(labels))])
        rest = np.sort(rest)
        rest = rest[np.argsort(labels[rest], kind="stable")]
        shared = np.array_split(mixed, workers)
        # What the iid share leaves open of a worker's equal part is filled from the sorted rest.
        sizes = [len(part) for part in np.array_split(order, workers)]
        open_places = [size - len(part) for size, part in zip(sizes, shared, strict=True)]
        runs = np.split(rest, np.cumsum(open_places)[:-1])
        return [np.concatenate(both) for both in zip(shared, runs, strict=True)]


def label_counts(
    parts: list[np.ndarray], labels: "np.ndarray | Tensor", classes: int
) -> np.ndarray:
    """How many points of each class each worker has: (workers, classes).

    >>> label_counts([np.array([0, 1]), np.array([2])], np.array([0, 2, 2]), classes=3).tolist()
    [[1, 0, 1], [0, 0, 1]]
    """
    known = np.asarray(labels)
    return np.stack([np.bincount(known[part], minlength=classes) for part in parts])
