"""Mean around the median."""

from dataclasses import dataclass

from lit_byz._checks import keep_integer
from lit_byz.robust._columns import Reduction
from lit_byz.robust._coordinate_rule import CoordinateRule
from lit_byz.robust._registries import RULES


@RULES.register("meamed")
@dataclass(frozen=True)
class MeaMed(CoordinateRule):
    """Mean around the median: per coordinate, the mean of the n − f values nearest to the median.

    Xie et al., *Generalized Byzantine-tolerant SGD*, 2018. The nearest values are neighbours in
    sorted order; of two equally near runs of them the lower is taken.

    >>> import torch
    >>> MeaMed(f=1)(torch.tensor([[0.0], [1.0], [5.0]]))
    tensor([0.5000])
    """

    f: int

    def __post_init__(self) -> None:
        keep_integer(self, "f", 0)

    def reduction(self, n: int) -> Reduction:
        return Reduction(0, n, nearest=n - self.f)
