"""Rules that look at every subset of n − f vectors."""

import math
from dataclasses import dataclass
from itertools import combinations, islice
from typing import ClassVar

import torch

from lit_byz._checks import keep_integer
from lit_byz.robust._base import Choice, GeometricRule
from lit_byz.robust._geometry import Geometry

# Entries of the subsets' distance matrices that may be in memory at once.
ENTRIES = 1 << 21


@dataclass(frozen=True)
class SubsetRule(GeometricRule):
    """The mean of the n − f vectors that have the smallest spread.

    A subclass says what spread is. Exact, by looking at all subsets; more than ``most_subsets`` of
    them is an error. Of equal ones the subset that comes first in lexicographic order is taken.
    """

    f: int

    # Beyond this many one aggregation takes seconds.
    most_subsets: ClassVar[int] = 200_000
    # Spreads that differ by no more than this share are equal.
    tie: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)

    def check(self, n: int) -> None:
        super().check(n)
        # Of very many rows the exact number would take long to compute: that for f = 4 will do.
        fewer = self.f if n <= 100 else min(self.f, 4)
        subsets = math.comb(n, fewer)
        if subsets > self.most_subsets:
            known = f"{'at least ' if fewer < self.f else ''}{subsets:,}"
            raise ValueError(
                f"{type(self).__name__}: f={self.f} of n={n} rows means {known} subsets, more than "
                f"the {self.most_subsets:,} that are searched; take a smaller f or n, or another "
                "rule"
            )

    def spreads(self, distances: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        """The spread (items, subsets) of subsets whose rows are ``members`` (subsets, n − f).

        ``distances`` (items, n, n) are squared ones, between all rows.
        """
        raise TypeError(f"{type(self).__name__} does not say how far a subset is spread")

    def _selected(self, geometry: Geometry) -> torch.Tensor:
        self.check(geometry.n)
        n, size = geometry.n, geometry.n - self.f
        distances = geometry.squared_distances[..., :-1, :-1].reshape(-1, n, n)
        least = torch.full((len(distances), 1), torch.inf, dtype=torch.float64)
        held, chosen = least, torch.arange(size).repeat(len(distances), 1)
        subsets = combinations(range(n), size)
        at_once = max(1, ENTRIES // (len(distances) * size**2))
        while chunk := list(islice(subsets, at_once)):
            members = torch.tensor(chunk)
            spreads = self.spreads(distances, members)
            least = torch.minimum(least, spreads.amin(1, keepdim=True))
            limit = least * (1 + self.tie)
            first = (spreads <= limit).byte().argmax(1, keepdim=True)
            better = held > limit
            held = torch.where(better, spreads.gather(1, first), held)
            chosen = torch.where(better, members[first.squeeze(1)], chosen)
        mask = torch.zeros(len(distances), n, dtype=torch.bool).scatter_(1, chosen, True)
        return mask.reshape((*geometry.squared_distances.shape[:-2], n))

    def weights(self, geometry: Geometry) -> torch.Tensor:
        return self._weights(self._selected(geometry))

    def choice(self, geometry: Geometry) -> Choice:
        selected = self._selected(geometry)
        return Choice(self._weights(selected), selected)

    def _weights(self, selected: torch.Tensor) -> torch.Tensor:
        return selected.double() / (selected.shape[-1] - self.f)
