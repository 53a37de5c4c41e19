"""No attack."""

from dataclasses import dataclass
from typing import ClassVar

from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("none")
@dataclass(frozen=True)
class NoAttack(Attack):
    """No attack: the f workers send the honest mean, which is what they would do if honest."""

    by_columns: ClassVar[bool] = True

    def plan(self, scene: Scene, state: State) -> Move:
        return Move(scene.honest, scene.mean)
