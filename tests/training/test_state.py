"""What a run keeps from step to step: a random iterate, momentums that fade."""

from typing import Any

import pytest
import torch

from lit_byz.attacks import SignFlip
from tests.training._models import make
from tests.training._setup import Watch, run, simulation


def test_random_iterate() -> None:
    """The step is drawn in advance, every step may be drawn, and its parameters are kept."""
    drawn = {
        simulation(make("logreg"), SignFlip(), seed=seed, steps=3).iterate_step
        for seed in range(30)
    }
    assert drawn == {0, 1, 2}
    settings: dict[str, Any] = {"steps": 6, "output": "random_iterate"}
    module, watch = simulation(make("logreg"), SignFlip(), seed=4, **settings), Watch()
    first = module.flat.gather()  # without convolutions, the parameters as they come
    run(module, "32-true", [watch])
    iterates = [first, *watch.parameters]
    assert module.iterate is not None
    assert torch.equal(module.iterate, iterates[module.iterate_step])
    last = watch.parameters[-1]
    accuracies = {step: module.evaluate_at(theta) for step, theta in enumerate(iterates)}
    assert module.evaluate_at(module.iterate) == accuracies[module.iterate_step]
    assert torch.equal(module.flat.gather(), last)
    plain = run(simulation(make("logreg"), SignFlip(), seed=4, steps=6), "32-true")
    assert plain.iterate is None
    assert torch.equal(plain.flat.gather(), last)


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
    module.setup("fit")
    module.momentums.fill_(1e-20)
    honest = run(module, "32-true").honest
    subnormal = (honest != 0) & (honest.abs() < torch.finfo(torch.float32).tiny)
    assert bool(subnormal.any()) == (not fading)
    assert bool((honest == 0).any()) == fading
