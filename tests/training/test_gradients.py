"""The methods of computing per-worker gradients: equal results."""

import pytest
import torch
from torch import Tensor, nn

from lit_byz.attacks import SignFlip
from lit_byz.models import initialise
from lit_byz.training._flat import FlatParameters
from lit_byz.training._joined import supports_joined
from lit_byz.training._stochastic import WorkerLayers, replace_dropout
from lit_byz.training._task import Task
from lit_byz.training.gradients import METHODS
from tests.training._models import AsFunction, Odd, Tied, make, repeated
from tests.training._setup import make_batches, run, simulation


def prepare(model: nn.Module, dtype: torch.dtype = torch.float64) -> tuple[Task, Tensor, Tensor]:
    """A task and one round of batches."""
    model = model.to(dtype)
    replace_dropout(model)
    x, y = make_batches(workers=4, size=5).round(0)
    x = x.to(dtype)
    task = Task(
        model, nn.functional.cross_entropy, FlatParameters(model), WorkerLayers(model, x[0, :1])
    )
    return task, x, y


def gradients(
    task: Task, x: Tensor, y: Tensor, method: str, step: int = 0
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Momentums that were not zero, with the gradients added; losses; the layers' buffers."""
    rows = torch.linspace(-1, 1, len(x) * task.flat.size, dtype=x.dtype).view(len(x), -1)
    task.model.train()
    buffers = task.layers.buffers(7, step, *y.shape)
    losses = METHODS[method](task, rows, 0.25, x, y, buffers)
    return rows, losses, buffers


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        ("mlp", ["joined", "vmap"]),
        ("cnn_mnist", ["joined", "vmap"]),
        ("dropping", ["joined", "vmap"]),
        ("normed", ["vmap"]),
        ("normed_dropping", ["vmap"]),
    ],
)
def test_methods_agree(model: str, methods: list[str]) -> None:
    task, x, y = prepare(make(model))
    rows, losses, buffers = gradients(task, x, y, "loop")
    for method in methods:
        other, other_losses, other_buffers = gradients(task, x, y, method)
        assert torch.allclose(other, rows, rtol=1e-11, atol=1e-13), method
        assert torch.allclose(other_losses, losses, rtol=1e-12), method
        assert other_buffers.keys() == buffers.keys()
        for name, value in buffers.items():
            assert torch.allclose(other_buffers[name].double(), value.double(), rtol=1e-12), name
    assert all(p.requires_grad for p in task.flat.parameters)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("error")
def test_memory_layouts(method: str) -> None:
    """Weights in either layout: the same gradients, added without a change of layout."""
    plain, x, y = prepare(make("cnn_mnist"))
    turned, *_ = prepare(make("cnn_mnist").to(memory_format=torch.channels_last))
    rows = {}
    for name, task in (("plain", plain), ("turned", turned)):
        added = torch.zeros(len(x), task.flat.size, dtype=x.dtype)
        METHODS[method](task, added, 1.0, x, y, {})
        rows[name] = torch.cat([view.flatten(1) for view in task.flat.views(added)], dim=1)
        task.flat.attach(added[0])
        for p in (layer.weight for layer in task.model.layers if isinstance(layer, nn.Conv2d)):
            for layout in (torch.contiguous_format, torch.channels_last):
                same = p.grad.is_contiguous(memory_format=layout)
                assert same == p.is_contiguous(memory_format=layout)
        views = task.flat.views(task.flat.gather())
        assert all(map(torch.equal, task.flat.parameters, views))
    assert torch.allclose(rows["plain"], rows["turned"], rtol=1e-9, atol=1e-12)
    weights = [task.model.layers[0].weight for task in (plain, turned)]
    assert torch.equal(*weights)


@pytest.mark.parametrize("method", METHODS)
def test_frozen_parameters_are_left_out(method: str) -> None:
    model = make("mlp")
    model[1].weight.requires_grad_(False)
    task, x, y = prepare(model)
    assert task.flat.size == 16 + 160 + 10
    expected, *_ = gradients(task, x, y, "loop")
    assert torch.allclose(gradients(task, x, y, method)[0], expected, rtol=1e-11, atol=1e-13)
    assert not model[1].weight.requires_grad


@pytest.mark.parametrize("layer", [nn.Linear, nn.Conv2d])
def test_joined_with_shapes_of_all_kinds(layer: type) -> None:
    """No bias, stride, dilation, groups; linear layers on more than one leading dimension."""
    if layer is nn.Conv2d:
        model: nn.Module = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, bias=False),
            nn.Conv2d(4, 6, 3, dilation=2, padding=1, groups=2),
            nn.Flatten(),
            nn.Linear(6 * 11 * 11, 10),
        )
    else:
        model = nn.Sequential(nn.Linear(28, 3, bias=False), nn.Flatten(), nn.Linear(84, 10))
    task, x, y = prepare(initialise(lambda: model, 0))
    assert supports_joined(task.model)
    expected, *_ = gradients(task, x, y, "loop")
    assert torch.allclose(gradients(task, x, y, "joined")[0], expected, rtol=1e-10, atol=1e-12)


def test_tied_weights() -> None:
    task, x, y = prepare(initialise(Tied, 0))
    expected, *_ = gradients(task, x, y, "loop")
    for method in ("joined", "vmap"):
        assert torch.allclose(gradients(task, x, y, method)[0], expected, rtol=1e-10, atol=1e-12)


def test_a_layer_in_two_places_keeps_its_parameters() -> None:
    """torch.func's tying of names would leave the model with other tensors than it had."""

    def model() -> nn.Module:
        return initialise(repeated, 0)

    results = [
        run(simulation(model(), SignFlip(), steps=2, **settings)).flat.gather()
        for settings in ({"gradients": "loop"}, {"gradients": "vmap"}, {"local_steps": 2})
    ]
    assert torch.allclose(results[0], results[1], rtol=1e-9, atol=1e-12)
    assert not torch.allclose(results[2], model_vector(model()), atol=1e-4)


def model_vector(model: nn.Module) -> Tensor:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach().double()


def test_joined_refuses_what_it_cannot_tell_apart() -> None:
    task, x, y = prepare(repeated())
    with pytest.raises(ValueError, match="runs twice"):
        gradients(task, x, y, "joined")
    task, x, y = prepare(AsFunction())
    with pytest.raises(ValueError, match="was not run"):
        gradients(task, x, y, "joined")


def test_any_model_trains() -> None:
    module = simulation(Odd(), SignFlip(), steps=3, weight_decay=0.0)
    before = module.flat.gather()
    run(module)
    assert module.gradient_method == "loop"
    after = module.flat.gather()
    assert torch.isfinite(after).all()
    assert not torch.equal(before.double(), after)
    unused = dict(module.model.named_parameters())["unused.weight"]
    assert torch.equal(unused.double().flatten(), _find(module.flat, before, "unused.weight"))


def _find(flat: FlatParameters, vector: Tensor, name: str) -> Tensor:
    names = [n for n, _ in Odd().named_parameters()]
    return list(flat.views(vector))[names.index(name)].flatten().double()
