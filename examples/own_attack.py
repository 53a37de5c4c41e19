"""Two attacks of one's own: one that sends something fixed, one whose factor is searched for.

python pipelines/train.py attack=examples.own_attack.AgainstLongest attack.factor=3 train.steps=50
python pipelines/sweep.py attack=[sf,examples.own_attack.AgainstMedoid] clip=[none,arc] train.steps=50 --dry-run

An attack sees all honest vectors and the server. It answers with coefficients over vectors that
exist, not with a new vector: what the server makes of them then costs an n × n matrix.

python examples/own_attack.py
"""  # noqa: E501  (a command is one line)

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz.attacks import FOE, Attack, Move, Scene, SearchedAttack, State
from lit_byz.robust import ARC, CWTM, NNM, Basis, Geometry, RobustAggregator


@dataclass(frozen=True)
class AgainstLongest(Attack):
    """Sends −factor times the longest honest vector: outliers that look like a worker's."""

    # It asks the basis for norms and treats all columns alike: several devices may divide them.
    by_columns: ClassVar[bool] = True

    factor: float = 1.0

    def plan(self, scene: Scene, state: State) -> Move:
        coefficients = torch.zeros(scene.h, dtype=torch.float64)
        coefficients[int(scene.honest.squared_norms.argmax())] = -self.factor
        return Move(scene.honest, coefficients)


@dataclass(frozen=True)
class AgainstMedoid(SearchedAttack):
    """Sends m̄ − τ x*, x* being the most central honest vector, with the τ that hurts the most.

    A ``SearchedAttack`` says where its line starts and where it goes; the search, its strengths
    (``attack.search=coarse``) and ``attack.tau`` for a fixed factor come with the base class.
    """

    def line(self, scene: Scene) -> tuple[Basis, torch.Tensor, torch.Tensor]:
        among = Geometry(scene.honest).squared_distances[:-1, :-1]
        direction = torch.zeros(scene.h, dtype=torch.float64)
        direction[int(among.sum(0).argmin())] = -1.0
        return scene.honest, scene.mean, direction


def main() -> None:
    """How far each attack drives a server from the honest mean, beside FOE."""
    honest = torch.randn(10, 1000, generator=torch.Generator().manual_seed(1)) + 0.2
    server = RobustAggregator(CWTM(f=2), clip=ARC(f=2), mix=NNM(f=2))
    for attack in (FOE(), AgainstLongest(factor=3.0), AgainstMedoid()):
        sent = attack(honest, f=2, server=server)
        output = server(torch.cat([honest, sent.expand(2, -1)]))
        damage = float((output - honest.mean(0)).norm())
        print(f"{type(attack).__name__:<14} damage {damage:.3f}")


if __name__ == "__main__":
    main()
