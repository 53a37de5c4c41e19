"""What a RobustDSGD is given, checked before anything is computed."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from lit_byz.attacks import Attack, NoAttack
from lit_byz.errors import BadRequest
from lit_byz.training.data import Round
from lit_byz.training.settings import TrainSettings


def checked_model(given: object) -> nn.Module:
    """The model, if it is one."""
    if isinstance(given, nn.Module):
        return given
    raise TypeError(f"RobustDSGD: model must be an nn.Module, got {given!r}")


def attack_of(given: object) -> Attack:
    """The attack; without one, Byzantine workers send the honest mean."""
    if given is None:
        return NoAttack()
    if isinstance(given, Attack):
        return given
    raise TypeError(
        f"RobustDSGD: attack must be an Attack such as SignFlip(), or None, got {given!r}"
    )


def settings_of(given: object) -> TrainSettings:
    """The settings, also where they come as a mapping."""
    if isinstance(given, TrainSettings):
        return given
    if given is None or isinstance(given, Mapping):
        return TrainSettings(**given or {})
    raise TypeError(f"RobustDSGD: settings must be TrainSettings or a mapping, got {given!r}")


def round_of(batch: object) -> Round:
    """What a loader of training gives, if it is what all workers draw in one round."""
    if isinstance(batch, Round):
        return batch
    raise BadRequest(
        f"RobustDSGD: a training batch is a Round of all workers, got {type(batch).__name__}; "
        "give the trainer datamodule=WorkerData(…), or RobustDSGD data=WorkerData(…) alone"
    )


def refuse_other_rounds(trainer: Any) -> None:
    """A round is drawn by its number: the same few cannot come again and again."""
    if getattr(trainer, "overfit_batches", 0):
        raise BadRequest(
            f"Trainer(overfit_batches={trainer.overfit_batches}): no two rounds of RobustDSGD are "
            "the same; to overfit, take a data set that is small"
        )
