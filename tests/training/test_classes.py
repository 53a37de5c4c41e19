"""How many classes there are: as many as the data set says, whichever its labels show."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lit_byz.attacks import Attack, Move, Scene, State
from lit_byz.data import Dataset
from lit_byz.robust import Average
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData
from tests.training._setup import run


class LastClassUnseen(Dataset):
    """Four classes, of which the training points have three."""

    classes = 4
    shape = (3,)

    def read(self, root: str | Path | None) -> Any:
        labels = np.arange(30) % 3
        features = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
        return features, labels, features[:4], np.arange(4)


@dataclass(frozen=True)
class Keep(Attack):
    """Does nothing, and keeps what an attack on labels would send."""

    seen: list[Tensor] = field(default_factory=list)
    needs_flipped = True

    def plan(self, scene: Scene, state: State) -> Move:
        assert scene.flipped is not None
        self.seen.append(scene.flipped.clone())
        return Move(scene.honest, scene.mean)


def test_labels_are_flipped_among_all_classes() -> None:
    attack, data = Keep(), WorkerData(LastClassUnseen(), "iid", workers=3, batch_size=5, seed=1)
    model = nn.Linear(3, 4)
    before = nn.Linear(3, 4).double()
    before.load_state_dict(model.state_dict())
    settings = TrainSettings(steps=1)
    module = RobustDSGD(model, Average(), attack, f=1, settings=settings, data=data)
    run(module)
    assert module.classes == 4
    x, y = data.batches.round(0)
    loss = nn.functional.cross_entropy(before(x.double()).flatten(0, 1), 3 - y.flatten())
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, before.parameters())])
    assert torch.allclose(attack.seen[0], expected, rtol=1e-9, atol=1e-12)


def test_batches_alone_show_their_labels() -> None:
    data = WorkerData(LastClassUnseen(), "iid", workers=3, batch_size=5, seed=1)
    assert (data.classes, WorkerData.of(data.batches).classes) == (4, 3)
