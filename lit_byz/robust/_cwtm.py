"""Coordinate-wise trimmed mean."""

from dataclasses import dataclass

from lit_byz._checks import keep_integer
from lit_byz.robust._columns import Reduction
from lit_byz.robust._coordinate_rule import CoordinateRule
from lit_byz.robust._registries import RULES


@RULES.register("cwtm")
@dataclass(frozen=True)
class CWTM(CoordinateRule):
    """Coordinate-wise trimmed mean: drops the f largest and f smallest values, averages the rest.

    Yin et al., *Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates*, 2018.

    >>> import torch
    >>> CWTM(f=1)(torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    tensor([1., 1.])
    """

    f: int

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)

    def reduction(self, n: int) -> Reduction:
        return Reduction(self.f, n - self.f)
