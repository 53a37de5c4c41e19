"""Minimum-diameter averaging."""

import math
from dataclasses import dataclass
from itertools import combinations, islice

import torch

from lit_byz._checks import check_integer
from lit_byz.robust._base import RULES, Choice, GeometricRule
from lit_byz.robust._geometry import Geometry

# Beyond this many subsets one aggregation takes seconds.
MOST_SUBSETS = 200_000
CHUNK = 20_000


@RULES.register("mda")
@dataclass(frozen=True)
class MDA(GeometricRule):
    """Minimum-diameter averaging: the mean of the n − f vectors with the smallest diameter.

    El Mhamdi et al., *Distributed Momentum for Byzantine-resilient SGD*, ICLR 2021. Exact, by
    looking at all subsets; more than 200,000 of them is an error. Of equal diameters the subset
    that comes first in lexicographic order is taken.

    >>> MDA(f=1)(torch.tensor([[0.0], [1.0], [9.0]]))
    tensor([0.5000])
    """

    f: int

    def __post_init__(self) -> None:
        check_integer(self, "f", self.f, 0)

    def check(self, n: int) -> None:
        super().check(n)
        # Of very many rows the exact number would take long to compute: that for f = 4 will do.
        fewer = self.f if n <= 100 else min(self.f, 4)
        subsets = math.comb(n, fewer)
        if subsets > MOST_SUBSETS:
            known = f"{'at least ' if fewer < self.f else ''}{subsets:,}"
            raise ValueError(
                f"MDA: f={self.f} of n={n} rows means {known} subsets, more than the "
                f"{MOST_SUBSETS:,} that are searched; take a smaller f or n, or another rule"
            )

    def _selected(self, geometry: Geometry) -> torch.Tensor:
        self.check(geometry.n)
        n = geometry.n
        distances = geometry.squared_distances[..., :-1, :-1].reshape(-1, n, n)
        best = torch.full((len(distances),), torch.inf, dtype=torch.float64)
        chosen = torch.zeros(len(distances), n - self.f, dtype=torch.long)
        subsets = combinations(range(n), n - self.f)
        while chunk := list(islice(subsets, CHUNK)):
            members = torch.tensor(chunk)
            for item, matrix in enumerate(distances):
                # A subset's diameter, one member at a time: no (subsets, k, k) array.
                diameters = torch.zeros(len(members), dtype=torch.float64)
                for k in range(members.shape[1]):
                    others = matrix[members[:, k].unsqueeze(1), members]
                    diameters = torch.maximum(diameters, others.amax(1))
                smallest = int(diameters.argmin())
                if diameters[smallest] < best[item]:
                    best[item], chosen[item] = diameters[smallest], members[smallest]
        mask = torch.zeros(len(distances), n, dtype=torch.bool).scatter_(1, chosen, True)
        return mask.reshape((*geometry.squared_distances.shape[:-2], n))

    def weights(self, geometry: Geometry) -> torch.Tensor:
        return self._selected(geometry).double() / (geometry.n - self.f)

    def choice(self, geometry: Geometry) -> Choice:
        return Choice(self.weights(geometry), self._selected(geometry))
