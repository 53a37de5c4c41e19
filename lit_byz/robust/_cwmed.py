"""Coordinate-wise median."""

from dataclasses import dataclass

from lit_byz.robust._columns import Reduction
from lit_byz.robust._coordinate_rule import CoordinateRule
from lit_byz.robust._registries import RULES


@RULES.register("cwmed")
@dataclass(frozen=True)
class CWMed(CoordinateRule):
    """Coordinate-wise median; for even n the mean of the two middle values.

    Yin et al., *Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates*, 2018.

    >>> import torch
    >>> CWMed()(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    tensor([1., 1.])
    """

    def reduction(self, n: int) -> Reduction:
        return Reduction((n - 1) // 2, n // 2 + 1)
