"""Bucketing."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz._checks import keep_integer
from lit_byz._streams import Stream, numpy_generator
from lit_byz.robust._base import Mix
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._registries import MIXES


@MIXES.register("bucketing")
@dataclass(frozen=True)
class Bucketing(Mix):
    """Bucketing: the vectors are dealt at random into buckets of s, each replaced by its mean.

    Karimireddy et al., *Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing*, ICLR
    2022. The deal depends on ``seed`` and on the server's step alone; the last bucket may be
    smaller. ⌈n/s⌉ vectors come out, up to f of them Byzantine: the rule behind it must have
    2f < ⌈n/s⌉.
    """

    uses_distances: ClassVar[bool] = False

    s: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        keep_integer(self, "s", 1)
        keep_integer(self, "seed", 0)

    def rows_after(self, n: int) -> int:
        return -(-n // self.s)

    def matrix(self, geometry: Geometry, step: int = 0) -> torch.Tensor:
        n = geometry.n
        order = numpy_generator(self.seed, Stream.BUCKETS, step).permutation(n)
        matrix = torch.zeros(self.rows_after(n), n, dtype=torch.float64)
        for bucket, start in enumerate(range(0, n, self.s)):
            members = order[start : start + self.s]
            matrix[bucket, members] = 1.0 / len(members)
        return matrix
