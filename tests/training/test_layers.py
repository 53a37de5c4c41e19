"""Dropout masks and batch statistics of workers."""

import pytest
import torch
from torch import Tensor, nn

from lit_byz.attacks import SignFlip
from lit_byz.training._stochastic import MaskedDropout, WorkerLayers, replace_dropout
from tests.training._models import UsedTwice, make
from tests.training._setup import Watch, make_batches, run, simulation


def layers_of(name: str) -> WorkerLayers:
    model = make(name)
    replace_dropout(model)
    return WorkerLayers(model, torch.zeros(1, 1, 28, 28))


def masks(seed: int = 1, step: int = 0, part: tuple[int, ...] = ()) -> dict[str, Tensor]:
    return layers_of("dropping").buffers(seed, step, 6, 50, part)


def test_masks_differ_between_workers_layers_and_steps() -> None:
    drawn = masks()
    assert {name: tuple(mask.shape) for name, mask in drawn.items()} == {
        "2.mask": (6, 50, 4, 8, 8),
        "5.mask": (6, 50, 12),
    }
    for (name, mask), keep in zip(drawn.items(), (0.7, 0.5), strict=True):
        assert set(mask.unique().tolist()) == {0.0, torch.tensor(1 / keep).item()}
        assert float(mask.mean()) == pytest.approx(1.0, abs=0.1)
        for worker in range(1, 6):
            assert not torch.equal(mask[worker], mask[0])
        for other in (masks(step=1), masks(seed=2), masks(part=(0,)), masks(part=(1,))):
            assert not torch.equal(other[name], mask)
        assert torch.equal(masks()[name], mask)


@pytest.mark.parametrize(("p", "values"), [(0.0, {1.0}), (1.0, {0.0})])
def test_dropping_nothing_or_everything(p: float, values: set[float]) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Dropout(p))
    replace_dropout(model)
    stacked = WorkerLayers(model, torch.zeros(1, 5)).buffers(0, 0, 2, 3)
    assert set(stacked["1.mask"].unique().tolist()) == values


def test_only_dropout_is_replaced() -> None:
    model = nn.Sequential(nn.Dropout(0.1), nn.Sequential(nn.Dropout(0.2), nn.Dropout2d(0.3)))
    replace_dropout(model)
    assert [type(m).__name__ for m in model.modules() if not isinstance(m, nn.Sequential)] == [
        "MaskedDropout",
        "MaskedDropout",
        "Dropout2d",
    ]
    assert model[1][0].p == 0.2
    assert "p=0.2" in str(model)
    assert not list(model.state_dict())


def test_evaluation_drops_nothing() -> None:
    layer = MaskedDropout(0.5)
    x = torch.ones(3, 4)
    assert torch.equal(layer.eval()(x), x)
    layer.train().mask = torch.zeros(3, 4)
    assert torch.equal(layer(x), torch.zeros(3, 4))


def test_a_layer_in_two_places_draws_by_itself() -> None:
    """It cannot be given one mask; its draws come from the step's number all the same."""
    settings = {"steps": 2, "gradients": "loop"}
    once, again = (run(simulation(_same(UsedTwice), SignFlip(), **settings)) for _ in range(2))
    assert torch.equal(once.flat.gather(), again.flat.gather())
    assert not once._workers.task.layers.dropouts
    model = once.model.train()
    x = torch.ones(2, 1, 28, 28, dtype=torch.float64)
    assert not torch.equal(model(x), model(x))


def _same(model: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return model()


@pytest.mark.parametrize("full_batch", [False, True])
def test_workers_with_the_same_data_have_their_own_masks(full_batch: bool) -> None:
    batches = make_batches(workers=3, size=480)
    batches.parts = [batches.parts[0]] * 3
    batches._orders = [(-1, part) for part in batches.parts]
    settings = {"steps": 1, "full_batch": full_batch, "momentum": 0.0, "gradients": "loop"}
    module, watch = simulation(make("dropping"), SignFlip(), batches=batches, **settings), Watch()
    run(module, callbacks=[watch])
    first, second, third = watch.honest[0]
    assert (first - second).norm() > 1e-3 * first.norm()
    assert (second - third).norm() > 1e-3 * first.norm()


def test_running_statistics_follow_the_workers_mean() -> None:
    batches = make_batches(workers=4, size=8)
    module = simulation(make("normed"), SignFlip(), batches=batches, steps=2, lr=1e-9)
    run(module)
    first: nn.Conv2d = module.model[0]
    mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    with torch.no_grad():
        for step in range(2):
            seen = [first(x.double()).relu() for x in batches.round(step)[0]]
            workers = torch.stack([x.mean((0, 2, 3)) for x in seen])
            spreads = torch.stack([x.transpose(0, 1).flatten(1).var(1) for x in seen])
            mean = 0.9 * mean + 0.1 * workers.mean(0)
            var = 0.9 * var + 0.1 * spreads.mean(0)
    assert torch.allclose(module.model[2].running_mean, mean, rtol=1e-6)
    assert torch.allclose(module.model[2].running_var, var, rtol=1e-6)


def test_momentum_of_batch_norm_is_kept() -> None:
    model = make("normed")
    model[2].momentum = 0.5
    module = run(simulation(model, SignFlip(), steps=1))
    untouched = make("normed").double()[2].running_mean
    once = module.model[2].running_mean.clone()
    again = run(module)  # goes on: the layer's momentum must not be taken for 1
    assert again._workers.task.layers.momentum["2"] == 0.5
    assert not torch.equal(once, untouched)


def test_batch_norm_without_running_statistics() -> None:
    def model() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 2, 5, stride=4),
            nn.BatchNorm2d(2, track_running_stats=False),
            nn.Flatten(),
            nn.Linear(72, 10),
        )

    for settings in ({}, {"full_batch": True}, {"local_steps": 2}):
        module = run(simulation(model(), SignFlip(), steps=2, **settings))
        assert torch.isfinite(module.flat.gather()).all()
