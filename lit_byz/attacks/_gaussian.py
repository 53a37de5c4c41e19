"""Random noise."""

from dataclasses import dataclass
from typing import ClassVar

from lit_byz._checks import keep_integer, keep_number
from lit_byz._streams import Stream, torch_generator
from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("gaussian")
@dataclass(frozen=True)
class GaussianNoise(Attack):
    """Random noise: each coordinate from N(0, scale²), drawn anew at every step from the seed."""

    by_columns: ClassVar[bool] = True

    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        keep_number(self, "scale", 0)
        keep_integer(self, "seed", 0)

    def plan(self, scene: Scene, state: State) -> Move:
        noise = scene.honest.draw(torch_generator(self.seed, Stream.NOISE, scene.step))
        return Move.of_row(scene, noise * self.scale)
