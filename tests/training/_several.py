"""A process of runs on several devices: every case of a list, one after the other.

``main`` takes a folder and cases from the command line, and from the environment LOCAL_RANK,
DEVICES, MASTER_ADDR and MASTER_PORT. It leaves in the folder what each case came to.
"""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightning
import torch
from torch import nn

from lit_byz.attacks import (
    ALIE,
    FOE,
    Attack,
    GaussianNoise,
    LabelFlip,
    Mimic,
    MinMax,
    Move,
    NonFinite,
    Scene,
    SignFlip,
    Span,
    State,
)
from lit_byz.models import MODELS, initialise
from lit_byz.robust import (
    ARC,
    CWTM,
    NNM,
    Bucketing,
    CWMed,
    GeometricMedian,
    MeaMed,
    MultiKrum,
    NoClip,
    RobustAggregator,
    Rule,
)
from lit_byz.training import RobustDSGD, ShardedWorkers, TrainSettings, WorkerData

STEPS = 20


class Midpoint(Rule):
    """A user's rule, which looks at whole vectors: the mean of the two that are farthest apart."""

    def aggregate(self, x: torch.Tensor) -> torch.Tensor:
        place = int(torch.cdist(x, x).argmax())
        return (x[place // len(x)] + x[place % len(x)]) / 2


class Longest(Attack):
    """A user's attack, which looks at whole vectors: the opposite of the longest."""

    def plan(self, scene: Scene, state: State) -> Move:
        return Move.of_row(scene, -scene.honest.rows[scene.honest.rows.norm(dim=1).argmax()])


class Noisy(nn.Module):
    """Dropout and batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 5, stride=3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3)
        )
        self.head = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).flatten(1))  # type: ignore[no-any-return]


def server(rule: Rule, f: int = 2, **parts: Any) -> RobustAggregator:
    return RobustAggregator(rule, **{"clip": ARC(f), "mix": NNM(f), **parts})


@dataclass
class Case:
    server: RobustAggregator
    attack: Attack
    settings: dict[str, Any] = field(default_factory=dict)
    noisy: bool = False


CASES = {
    "cwtm-foe": Case(server(CWTM(2)), FOE()),
    "gm-alie": Case(server(GeometricMedian()), ALIE()),
    "multi_krum-mimic": Case(server(MultiKrum(2)), Mimic()),
    "cwtm-lf": Case(server(CWTM(2)), LabelFlip(momentum=True)),
    "gm-span": Case(server(GeometricMedian()), Span(objective="drift", memory=True, budget=500)),
    "cwmed-span": Case(server(CWMed()), Span(budget=500)),
    "meamed-sf": Case(server(MeaMed(2), clip=NoClip(), mix=Bucketing(s=2)), SignFlip()),
    "bounded": Case(server(CWTM(2), bound_output=True), ALIE(search="coarse")),
    "gaussian": Case(server(CWTM(2)), GaussianNoise(scale=3.0)),
    "min_max": Case(server(MultiKrum(2)), MinMax()),
    # Unclipped: clipped vectors are equally far from zeros, and rounding would break the ties.
    "nan": Case(server(CWTM(2), clip=NoClip()), NonFinite()),
    "full_batch": Case(server(GeometricMedian()), FOE(), {"full_batch": True}),
    "local_steps": Case(server(CWTM(2)), FOE(), {"local_steps": 3}),
    "noisy": Case(server(CWTM(2)), LabelFlip(), noisy=True),
    "own-rule": Case(server(Midpoint(), clip=NoClip(), mix=None), LabelFlip()),
    "own-attack": Case(server(CWTM(2)), Longest()),
}


def module(name: str) -> RobustDSGD:
    case = CASES[name]
    made = initialise(Noisy if case.noisy else MODELS["mlp"], seed=0)
    return RobustDSGD(made, case.server, case.attack, 2, TrainSettings(**case.settings), seed=1)


def trainer(folder: Path, **more: Any) -> lightning.Trainer:
    # In float64, so that a different order of summing stays a difference in the last digits.
    return lightning.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        precision="64-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        num_sanity_val_steps=0,
        **more,
    )


def outcome(used: lightning.Trainer, found: RobustDSGD) -> dict[str, Any]:
    state = {name: value.double() for name, value in found.model.state_dict().items()}
    accuracy = float(used.callback_metrics["test/accuracy"])
    seen = found.observed
    assert seen is not None
    return {"state": state, "accuracy": accuracy, "damage": seen.damage, "loss": seen.loss}


def data() -> WorkerData:
    return WorkerData("digits", "dirichlet", workers=7, batch_size=6, seed=1)


def train(name: str, folder: Path) -> dict[str, Any]:
    """A case in one process."""
    used, found = trainer(folder, devices=1), module(name)
    used.fit(found, datamodule=data())
    return outcome(used, found)


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    torch.set_num_threads(1)
    for name in names:
        found = module(name)
        used = trainer(folder, devices=int(os.environ["DEVICES"]), strategy=ShardedWorkers())
        used.fit(found, datamodule=data())
        divided = found._divided
        assert divided is not None
        kept = outcome(used, found)
        kept["sent"], kept["whole"] = divided.sharding.sent, divided.whole
        used.save_checkpoint(folder / f"{name}.ckpt")
        torch.save(kept, folder / f"{name}.{os.environ['LOCAL_RANK']}.pt")
