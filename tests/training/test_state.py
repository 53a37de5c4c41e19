"""What a run keeps from step to step: a random iterate, momentums that fade."""

from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor

from lit_byz.attacks import SignFlip
from tests.training._models import make
from tests.training._setup import run, simulation

State = dict[str, Tensor]


def copied(model: torch.nn.Module) -> State:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class States(Callback):
    """Keeps the model's parameters and statistics after every step."""

    def __init__(self) -> None:
        self.seen: list[State] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self.seen.append(copied(pl_module.model))


@pytest.mark.parametrize("model", ["logreg", "normed_dropping"])
def test_random_iterate(model: str) -> None:
    """The step is drawn in advance, every step may be drawn, and what the model was is kept."""
    drawn = {
        simulation(make("logreg"), SignFlip(), seed=seed, steps=3).iterate_step
        for seed in range(30)
    }
    assert drawn == {0, 1, 2}
    settings: dict[str, Any] = {"steps": 6, "output": "random_iterate"}
    module, states = simulation(make(model), SignFlip(), seed=4, **settings), States()
    first = copied(module.model)
    run(module, "32-true", [states])
    iterates = [first, *states.seen]
    assert 0 < module.iterate_step < 6
    assert module.iterate is not None
    assert same(module.iterate, iterates[module.iterate_step])
    accuracies = [module.evaluate_at(state) for state in iterates]
    assert module.evaluate_at(module.iterate) == accuracies[module.iterate_step]
    assert same(copied(module.model), iterates[-1])
    plain = run(simulation(make(model), SignFlip(), seed=4, steps=6), "32-true")
    assert plain.iterate is None
    assert same(copied(plain.model), iterates[-1])


def test_a_random_iterate_of_an_older_checkpoint() -> None:
    """Versions before kept θ̂ as a vector; a run that began under one goes on."""
    settings: dict[str, Any] = {"steps": 6, "output": "random_iterate", "gradients": "loop"}
    module = simulation(make("normed"), SignFlip(), seed=4, **settings)
    module.setup("fit")  # which brings convolutions into another layout
    old: dict[str, Any] = {"state_dict": module.state_dict()}
    module.on_save_checkpoint(old)
    old["robust_dsgd"]["iterate"] = module.flat.gather()
    del old["robust_dsgd"]["attack"]
    module.on_load_checkpoint(old)
    assert module.iterate is not None
    assert same(module.iterate, copied(module.model))


@pytest.mark.parametrize(
    ("settings", "taken"),
    [({}, True), ({"output": "last"}, False), ({"seed": 5}, False), ({"lr": 0.2}, True)],
)
def test_another_runs_random_iterate_is_not_taken(settings: dict[str, Any], taken: bool) -> None:
    """A new experiment may go on from a checkpoint; the step that it draws may be another."""
    usual: dict[str, Any] = {"steps": 6, "output": "random_iterate", "seed": 4}
    first = run(simulation(make("logreg"), SignFlip(), **usual), "32-true")
    checkpoint: dict[str, Any] = {"state_dict": first.state_dict()}
    first.on_save_checkpoint(checkpoint)
    second = simulation(make("logreg"), SignFlip(), **{**usual, **settings})
    assert (second.iterate_step == first.iterate_step) == ("seed" not in settings)
    second.on_load_checkpoint(checkpoint)
    assert (second.iterate is not None) == taken


class Faint(Callback):
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        pl_module.momentums.fill_(1e-20)


@pytest.mark.parametrize("fading", [True, False])
def test_faded_momentum_becomes_zero(fading: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead unit's momentum must not end among the subnormal numbers, which are slow."""
    if not fading:
        monkeypatch.setattr("lit_byz.training._workers.FADED", 0.0)
    torch.manual_seed(0)
    hidden = torch.nn.Linear(784, 4)
    with torch.no_grad():
        hidden.bias[0] = -1e6
    model = torch.nn.Sequential(torch.nn.Flatten(), hidden, torch.nn.ReLU(), torch.nn.Linear(4, 10))
    module = simulation(model, SignFlip(), steps=70, momentum=0.5, lr=0.01, gradients="loop")
    honest = run(module, "32-true", [Faint()]).honest
    subnormal = (honest != 0) & (honest.abs() < torch.finfo(torch.float32).tiny)
    assert bool(subnormal.any()) == (not fading)
    assert bool((honest == 0).any()) == fading
