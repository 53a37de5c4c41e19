"""The baseline that is written by hand trains as the library does."""

from typing import Any

import pytest
import torch

from lit_byz._streams import Stream, torch_generator
from lit_byz.attacks import ALIE, FOE, Attack, LabelFlip, Mimic, SignFlip
from lit_byz.benchmark import _simulations
from lit_byz.benchmark._byzfl import PAIRS
from lit_byz.benchmark._simulations import (
    Problem,
    loss_of,
    new_model,
    our_module,
    synthetic_batches,
    take_turns_training,
)
from lit_byz.benchmark.by_hand import ByHand

# With fewer attackers some distances are equal up to rounding, and neighbours a matter of taste.
HONEST, F, STEPS = 6, 2, 2


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_simulations.PROBLEMS, "cnn_mnist", Problem((1, 28, 28), 4))
    monkeypatch.setattr(_simulations, "POINTS", 12)


@pytest.mark.parametrize(
    ("rule", "attack", "settings"),
    [
        ("cwtm", SignFlip(), {}),
        ("cwtm", LabelFlip(), {}),
        ("cwtm", Mimic(), {}),
        ("cwtm", ALIE(tau=1.5), {"tau": 1.5}),
        pytest.param("cwtm", FOE(search="coarse"), {}, marks=pytest.mark.slow),
        pytest.param("cwtm", ALIE(search="coarse"), {}, marks=pytest.mark.slow),
        ("gm", FOE(tau=3.0), {"tau": 3.0}),
        pytest.param("gm", FOE(search="coarse"), {}, marks=pytest.mark.slow),
        ("multi_krum", ALIE(tau=1.5), {"tau": 1.5}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_trains_as_the_library_does(rule: str, attack: Attack, settings: dict[str, Any]) -> None:
    batches = synthetic_batches(HONEST)
    module = our_module(batches, attack, F, STEPS, PAIRS[rule].ours(F))
    take_turns_training(module, {}, 1.0)
    model = new_model("cnn_mnist")
    before = [p.detach().clone() for p in model.parameters()]
    name = {SignFlip: "sf", LabelFlip: "lf", Mimic: "mimic", FOE: "foe", ALIE: "alie"}
    if isinstance(attack, Mimic):
        draw = torch_generator(attack.seed, Stream.MIMIC)
        settings = {"direction": torch.randn(module.flat.size, generator=draw)}
    hand = ByHand(model, loss_of(model), f=F, attack=name[type(attack)], rule=rule, **settings)
    for step in range(STEPS):
        hand.step(*batches.round(step))
    for ours, theirs, start in zip(
        module.model.parameters(), model.parameters(), before, strict=True
    ):
        moved = float((theirs - start).detach().norm())
        assert float((ours - theirs).detach().norm()) <= 1e-4 * moved
        assert moved > 0


def test_models_with_running_statistics_go_worker_by_worker() -> None:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    hand = ByHand(model, torch.nn.functional.cross_entropy, f=1, attack="sf", classes=3)
    x, y = torch.randn(3, 5, 1, 2, 2), torch.randint(3, (3, 5))
    rows = hand.gradients(x, y)
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(x[1]), y[1]).backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert torch.allclose(rows[1], expected)
    hand.step(x, y)
