"""Zeros."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("zero")
@dataclass(frozen=True)
class ZeroGradient(Attack):
    """Zeros, as a worker that has stopped learning would send.

    >>> ZeroGradient()(torch.tensor([[1.0, 2.0]]), f=1)
    tensor([0., 0.])
    """

    by_columns: ClassVar[bool] = True

    def plan(self, scene: Scene, state: State) -> Move:
        return Move(scene.honest, torch.zeros(scene.h, dtype=torch.float64))
