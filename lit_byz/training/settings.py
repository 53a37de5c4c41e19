"""How to train, and what one step looked like."""

import itertools
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch

from lit_byz._checks import check_integer, check_number, keep_integer, keep_number
from lit_byz._streams import Stream, numpy_generator


@dataclass(frozen=True)
class TrainSettings:
    """How to train; the defaults are the paper's for MNIST."""

    steps: int = 1000
    lr: float = 0.1
    lr_milestones: list[int] = field(default_factory=list)
    lr_values: list[float] = field(default_factory=list)
    lr_decay: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    weight_decay_mode: Literal["server", "worker"] = "server"
    loss: Literal["auto", "nll", "cross_entropy"] = "auto"
    full_batch: bool = False
    local_steps: int = 1
    local_lr: float = 0.1
    gradients: Literal["auto", "vmap", "joined", "loop"] = "auto"
    output: Literal["last", "random_iterate"] = "last"

    def __post_init__(self) -> None:
        for name in ("steps", "local_steps"):
            keep_integer(self, name, 1)
        for name in ("lr", "local_lr"):
            keep_number(self, name, 0, above=True)
        keep_number(self, "lr_decay", 0, 1, above=True)
        keep_number(self, "weight_decay", 0)
        keep_number(self, "momentum")
        if not 0 <= self.momentum < 1:
            self._refuse("momentum", "a number in [0, 1)")
        if not isinstance(self.full_batch, bool):
            raise TypeError(f"TrainSettings: full_batch must be a bool, got {self.full_batch!r}")
        self._check_schedule()
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                self._refuse(name, f"one of {', '.join(allowed)}")

    def _check_schedule(self) -> None:
        milestones = [check_integer(self, "lr_milestones", m, 1) for m in self.lr_milestones]
        values = [check_number(self, "lr_values", v, 0, above=True) for v in self.lr_values]
        object.__setattr__(self, "lr_milestones", milestones)
        object.__setattr__(self, "lr_values", values)
        if any(later <= earlier for earlier, later in itertools.pairwise(milestones)):
            self._refuse("lr_milestones", "increasing")
        if values and len(values) != len(milestones):
            self._refuse("lr_values", f"empty, or have a value for each of {milestones}")

    def _refuse(self, name: str, allowed: str) -> None:
        raise ValueError(f"TrainSettings: {name} must be {allowed}, got {getattr(self, name)!r}")

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0: a milestone m ends with its m-th step."""
        passed = sum(step >= milestone for milestone in self.lr_milestones)
        if passed and self.lr_values:
            return self.lr_values[min(passed, len(self.lr_values)) - 1]
        return self.lr * self.lr_decay**passed


# The settings that are one of a few words.
CHOICES: dict[str, tuple[str, ...]] = {
    name: get_args(hint)
    for name, hint in get_type_hints(TrainSettings).items()
    if get_origin(hint) is Literal
}


def iterate_step(seed: int, steps: int) -> int:
    """After how many of its steps a run has the parameters θ̂, its random iterate."""
    return int(numpy_generator(seed, Stream.ITERATES).integers(steps))


def loss_of(model: torch.nn.Module, wanted: str) -> str:
    """Which loss suits a model: the one that is wanted, or the one that its output asks for."""
    if wanted != "auto":
        return wanted
    output = getattr(model, "output", "logits")
    return "nll" if output == "log_probabilities" else "cross_entropy"


class Milestones(torch.optim.lr_scheduler.LRScheduler):
    """The learning rate that the settings give each step, to the last bit."""

    def __init__(self, optimizer: torch.optim.Optimizer, settings: TrainSettings) -> None:
        self._settings = settings
        super().__init__(optimizer)

    def get_lr(self) -> list[float | torch.Tensor]:
        return [self._settings.lr_at(self.last_epoch) for _ in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Numbers alone: a checkpoint has to load where no code may be run."""
        return {"last_epoch": self.last_epoch, "_step_count": self._step_count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)


@dataclass(frozen=True)
class Observation:
    """What one step looked like from the server's room.

    ``bound`` is the most damage that theory allows for these honest vectors, where it says so.
    """

    step: int
    loss: float
    threshold: float
    clipped_honest: int
    clipped_byzantine: int
    mean_norm: float
    max_norm: float
    average_norm: float
    output_norm: float
    damage: float
    bound: float | None
    factor: float | None
    at_edge: bool
    non_finite: int
