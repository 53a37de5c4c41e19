"""Three rules of one's own: one by distances, one by coordinates, one by anything.

python pipelines/train.py rule=examples.own_rule.SoftKrum rule.sharpness=4 attack=foe train.steps=50
python pipelines/train.py rule=examples.own_rule.MiddleHalf attack=foe train.steps=50
python pipelines/train.py rule=examples.own_rule.CosineMean attack=sf mix=none train.steps=50

The signature of a constructor is the schema of its section: ``rule.sharpness`` is checked and shown
like any other key, and ``f`` follows ``server.f``. All three are first tried alone:

python examples/own_rule.py
"""

from dataclasses import dataclass

import torch

from lit_byz.robust import (
    ARC,
    CoordinateRule,
    GeometricRule,
    Geometry,
    Reduction,
    RobustAggregator,
    Rule,
)


@dataclass(frozen=True)
class SoftKrum(GeometricRule):
    """Weights that fall with a vector's distance to its n − f − 1 nearest others.

    The output is a weighted sum of the inputs, and the weights follow from their distances alone:
    a ``GeometricRule``. It works on an n × n matrix and never touches a coordinate, so that an
    attack may try hundreds of factors a step, and several devices need not gather vectors.
    """

    f: int
    sharpness: float = 1.0

    def weights(self, geometry: Geometry) -> torch.Tensor:
        # The last row and column are the origin's; dimensions in front are factors being tried.
        among = geometry.squared_distances[..., :-1, :-1]
        nearest = among.sort(dim=-1).values[..., 1 : geometry.n - self.f]
        scores = nearest.sum(-1)
        relative = scores / scores.mean(-1, keepdim=True).clamp(min=1e-300)
        return torch.softmax(-self.sharpness * relative, dim=-1)


@dataclass(frozen=True)
class MiddleHalf(CoordinateRule):
    """The mean of the middle half of every coordinate.

    A coordinate at a time, and only the order of its values matters: a ``CoordinateRule``. It says
    which of the sorted values are averaged; one fused pass over the columns does the rest.
    """

    def reduction(self, n: int) -> Reduction:
        return Reduction(n // 4, n - n // 4)


@dataclass(frozen=True)
class CosineMean(Rule):
    """The mean of the vectors that point along the coordinate-wise median.

    Neither kind of rule: it gets the whole matrix (n, d) and may do anything with it. Against an
    attack that searches, that is a whole aggregation for every factor: many times as slow.
    """

    def aggregate(self, x: torch.Tensor) -> torch.Tensor:
        middle = x.median(dim=0).values
        along = (x @ middle) > 0
        return x[along].mean(dim=0) if bool(along.any()) else middle


def main() -> None:
    """What each of them makes of nine vectors that agree and two that do not."""
    honest = torch.tensor([[1.0, 0.1 * i] for i in range(9)])
    x = torch.cat([honest, torch.tensor([[-30.0, 0.0], [-30.0, 0.0]])])
    for rule in (SoftKrum(f=2, sharpness=8.0), MiddleHalf(), CosineMean()):
        server = RobustAggregator(rule, clip=ARC(f=2))
        print(f"{type(rule).__name__:<10} {[round(float(value), 3) for value in server(x)]}")


if __name__ == "__main__":
    main()
