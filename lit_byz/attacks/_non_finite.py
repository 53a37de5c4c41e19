"""Vectors that are no numbers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("non_finite")
@dataclass(frozen=True)
class NonFinite(Attack):
    """Infinities or NaNs in every coordinate: a crash test. The server takes them for zeros.

    >>> NonFinite("inf")(torch.tensor([[1.0, 0.0]]), f=1)
    tensor([inf, inf])
    """

    by_columns: ClassVar[bool] = True

    value: Literal["nan", "inf", "-inf"] = "nan"

    def __post_init__(self) -> None:
        if self.value not in ("nan", "inf", "-inf"):
            raise ValueError(f"NonFinite: value must be one of nan, inf, -inf, got {self.value!r}")

    def plan(self, scene: Scene, state: State) -> Move:
        row = torch.full_like(scene.honest.rows[0], float(self.value))
        return Move.of_row(scene, row)
