"""Sign flipping."""

from dataclasses import dataclass
from typing import ClassVar

from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("sf")
@dataclass(frozen=True)
class SignFlip(Attack):
    """Sign flipping: sends −m̄, the honest mean's opposite.

    Allen-Zhu et al., *Byzantine-Resilient Non-Convex Stochastic Gradient Descent*, ICLR 2021.

    >>> import torch
    >>> SignFlip()(torch.tensor([[1.0, 0.0], [3.0, 2.0]]), f=1)
    tensor([-2., -1.])
    """

    by_columns: ClassVar[bool] = True

    def plan(self, scene: Scene, state: State) -> Move:
        return Move(scene.honest, -scene.mean)
