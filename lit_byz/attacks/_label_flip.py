"""Label flipping."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz._checks import keep_number
from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("lf")
@dataclass(frozen=True)
class LabelFlip(Attack):
    """Label flipping: sends the honest workers' mean gradient on labels l' = (classes − 1) − l.

    Allen-Zhu et al., *Byzantine-Resilient Non-Convex Stochastic Gradient Descent*, ICLR 2021. The
    gradient is sent raw; with ``momentum`` it passes through a momentum first, like an honest
    worker's, with factor ``beta``.
    """

    by_columns: ClassVar[bool] = True
    column_state: ClassVar[frozenset[str]] = frozenset({"momentum"})

    momentum: bool = False
    beta: float = 0.9

    def __post_init__(self) -> None:
        keep_number(self, "beta", 0, 1)

    @property
    def needs_flipped(self) -> bool:
        return True

    def plan(self, scene: Scene, state: State) -> Move:
        assert scene.flipped is not None
        sent = scene.flipped
        if self.momentum:
            before = state.get("momentum", torch.zeros_like(sent))
            state["momentum"] = sent = self.beta * before + (1 - self.beta) * sent
        return Move.of_row(scene, sent)
