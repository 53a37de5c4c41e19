"""Every metric of a run in memory, and in its checkpoints."""

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import Callback

if TYPE_CHECKING:
    from lit_byz.tracking.logger import Tracker


def same(stored: float, value: float) -> bool:
    """Whether a store has a value; it keeps infinity as the largest number."""
    kept = max(-sys.float_info.max, min(value, sys.float_info.max))
    return stored in (value, kept) or (math.isnan(stored) and math.isnan(value))


class History:
    """Every metric of a run in memory: name to steps and values.

    One thread adds to it; others may read the pairs of a metric meanwhile.
    """

    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = {}
        self.values: dict[str, list[float]] = {}

    def add(self, name: str, step: int, value: float) -> bool:
        """Whether that was new: a metric has one value per step, the first one given."""
        steps = self.steps.setdefault(name, [])
        if steps and step <= steps[-1]:
            return False
        self.values.setdefault(name, []).append(value)
        steps.append(step)  # at last: whoever reads finds a value for every step
        return True

    def pairs(self) -> dict[str, list[tuple[int, float]]]:
        return {name: self.pairs_of(name) for name in self.steps}

    def pairs_of(self, name: str) -> list[tuple[int, float]]:
        return list(zip(self.steps.get(name, []), self.values.get(name, []), strict=False))

    def load(self, pairs: Mapping[str, list[tuple[int, float]]]) -> None:
        self.steps = {name: [int(step) for step, _ in points] for name, points in pairs.items()}
        self.values = {name: [float(v) for _, v in points] for name, points in pairs.items()}


class KeepHistory(Callback):
    """Puts a tracker's history into checkpoints, so that a resumed run has all of it."""

    def __init__(self, tracker: "Tracker") -> None:
        self.tracker = tracker

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.tracker.history.pairs()

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.tracker.restore(checkpoint["history"])
