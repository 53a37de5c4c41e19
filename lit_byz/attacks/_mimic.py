"""Mimic."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from lit_byz._checks import keep_integer
from lit_byz._streams import Stream, torch_generator
from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State


@ATTACKS.register("mimic")
@dataclass(frozen=True)
class Mimic(Attack):
    """Mimic: repeats one honest worker's vector, so that its data count f + 1 times.

    Karimireddy, He and Jaggi, *Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing*,
    ICLR 2022. A running centre and a direction z of greatest spread are followed for ``warmup``
    steps; the target is the worker farthest along z, and stays the target from then on. A warm-up
    of 1 settles it at the first step, None never does. ``worker`` names the target instead, from 0
    to h − 1: then there is nothing to follow, and ``warmup`` and ``seed`` have no say.

    >>> Mimic(worker=1)(torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]), f=1)
    tensor([0., 2.])
    """

    by_columns: ClassVar[bool] = True
    column_state: ClassVar[frozenset[str]] = frozenset({"direction", "centre"})

    warmup: int | None = 100
    seed: int = 0
    worker: int | None = None

    def __post_init__(self) -> None:
        if self.warmup is not None:
            keep_integer(self, "warmup", 1)
        keep_integer(self, "seed", 0)
        if self.worker is not None:
            keep_integer(self, "worker", 0)

    def check(self, h: int) -> None:
        if self.worker is not None and self.worker >= h:
            raise ValueError(
                f"Mimic: worker must be one of the {h} honest workers, 0 to {h - 1}, "
                f"got {self.worker}"
            )

    def plan(self, scene: Scene, state: State) -> Move:
        coefficients = torch.zeros(scene.h, dtype=torch.float64)
        coefficients[self._target(scene, state) if self.worker is None else self.worker] = 1
        return Move(scene.honest, coefficients)

    def _target(self, scene: Scene, state: State) -> int:
        rows = scene.honest.rows
        if not state:
            draw = torch_generator(self.seed, Stream.MIMIC)
            state["direction"] = scene.honest.draw(draw)
            state["centre"] = torch.zeros_like(rows[0])
            state["seen"] = torch.tensor(0)
            state["target"] = torch.tensor(0)
        if self.warmup is None or int(state["seen"]) < self.warmup:
            self._follow(scene, state)
        return int(state["target"])

    @staticmethod
    def _follow(scene: Scene, state: State) -> None:
        honest, rows, seen = scene.honest, scene.honest.rows, int(state["seen"])
        direction = state["direction"]
        # In place, but for what the state holds: new memory costs more than these sums do.
        centre = honest.combine(scene.mean).add_(state["centre"], alpha=seen).div_(seen + 1)
        along = honest.total(rows @ direction - centre @ direction).double().cpu()
        spread = honest.combine(along).sub_(centre, alpha=along.sum().item())
        length = honest.norm(spread)
        if length > 0:
            direction = spread.div_(length).add_(direction, alpha=seen).div_(seen + 1)
            direction.div_(honest.norm(direction))
        state["direction"], state["centre"] = direction, centre
        state["seen"] = torch.tensor(seen + 1)
        state["target"] = honest.total(rows @ direction).argmax().cpu()
