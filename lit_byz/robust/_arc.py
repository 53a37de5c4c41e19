"""Adaptive Robust Clipping."""

from dataclasses import dataclass
from fractions import Fraction

import torch

from lit_byz._checks import check_minority, keep_integer, keep_number
from lit_byz.robust._base import Clip
from lit_byz.robust._registries import CLIPS


@CLIPS.register("arc")
@dataclass(frozen=True)
class ARC(Clip):
    """Adaptive Robust Clipping: clips the k = ⌊ζ (f/n)(n − f)⌋ longest vectors.

    The threshold is the norm of the (k+1)-th longest. With ζ = 2 an (f, κ)-robust rule behind it
    is (f, κ + 2f/(n−2f))-robust, and no output is longer than the longest honest vector
    (Theorem 3.2 and Lemma 5.1 of Allouah et al., *Adaptive Gradient Clipping for Robust Federated
    Learning*, 2025).

    >>> ARC(f=1)(torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]))
    tensor([[1.2000, 1.6000],
            [1.0000, 0.0000],
            [0.0000, 2.0000]])
    """

    f: int
    zeta: float = 2.0

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)
        keep_number(self, "zeta", 0, 2)

    def check(self, n: int) -> None:
        check_minority(self, self.f, n)

    def clipped_count(self, n: int) -> int:
        """k, exactly: no rounding may move it across a whole number."""
        zeta = Fraction(self.zeta).limit_denominator(10**6)
        return int(zeta * self.f * (n - self.f) / n)

    def threshold(self, norms: torch.Tensor) -> torch.Tensor:
        k = self.clipped_count(norms.shape[-1])
        return norms.sort(dim=-1, descending=True).values[..., k]
