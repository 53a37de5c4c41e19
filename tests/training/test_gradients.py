"""The ways of computing per-worker gradients: equal results, a choice by measurement."""

import json
import operator
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from lit_byz.attacks import SignFlip
from lit_byz.errors import BadRequest
from lit_byz.models import initialise
from lit_byz.training._flat import FlatParameters
from lit_byz.training._stochastic import WorkerLayers, replace_dropout
from lit_byz.training.gradients import WAYS, Task, choose, supports_joined
from tests.training._models import Centred, Doubled, Odd, UsedTwice, make
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
    task: Task, x: Tensor, y: Tensor, way: str, step: int = 0
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Momentums that were not zero, with the gradients added; losses; the layers' buffers."""
    rows = torch.linspace(-1, 1, len(x) * task.flat.size, dtype=x.dtype).view(len(x), -1)
    task.model.train()
    buffers = task.layers.buffers(7, step, *y.shape)
    losses = WAYS[way](task, rows, 0.25, x, y, buffers)
    return rows, losses, buffers


@pytest.mark.parametrize(
    ("model", "ways"),
    [
        ("mlp", ["joined", "vmap"]),
        ("cnn_mnist", ["joined", "vmap"]),
        ("dropping", ["joined", "vmap"]),
        ("normed", ["vmap"]),
        ("normed_dropping", ["vmap"]),
    ],
)
def test_ways_agree(model: str, ways: list[str]) -> None:
    task, x, y = prepare(make(model))
    rows, losses, buffers = gradients(task, x, y, "loop")
    for way in ways:
        other, other_losses, other_buffers = gradients(task, x, y, way)
        assert torch.allclose(other, rows, rtol=1e-11, atol=1e-13), way
        assert torch.allclose(other_losses, losses, rtol=1e-12), way
        assert other_buffers.keys() == buffers.keys()
        for name, value in buffers.items():
            assert torch.allclose(other_buffers[name].double(), value.double(), rtol=1e-12), name
    assert all(p.requires_grad for p in task.flat.parameters)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("error")
def test_memory_layouts(way: str) -> None:
    """Weights in either layout: the same gradients, added without a change of layout."""
    plain, x, y = prepare(make("cnn_mnist"))
    turned, *_ = prepare(make("cnn_mnist").to(memory_format=torch.channels_last))
    rows = {}
    for name, task in (("plain", plain), ("turned", turned)):
        added = torch.zeros(len(x), task.flat.size, dtype=x.dtype)
        WAYS[way](task, added, 1.0, x, y, {})
        rows[name] = torch.cat([view.flatten(1) for view in task.flat.views(added)], dim=1)
        task.flat.attach(added[0])
        for p in (layer.weight for layer in task.model.layers if isinstance(layer, nn.Conv2d)):
            for layout in (torch.contiguous_format, torch.channels_last):
                same = p.grad.is_contiguous(memory_format=layout)
                assert same == p.is_contiguous(memory_format=layout)
        vector = task.flat.gather()
        task.flat.scatter(2 * vector)
        assert torch.equal(task.flat.gather(), 2 * vector)
    assert torch.allclose(rows["plain"], rows["turned"], rtol=1e-9, atol=1e-12)
    weights = [task.model.layers[0].weight for task in (plain, turned)]
    assert torch.equal(*weights)


@pytest.mark.parametrize("way", WAYS)
def test_frozen_parameters_are_left_out(way: str) -> None:
    model = make("mlp")
    model[1].weight.requires_grad_(False)
    task, x, y = prepare(model)
    assert task.flat.size == 16 + 160 + 10
    expected, *_ = gradients(task, x, y, "loop")
    assert torch.allclose(gradients(task, x, y, way)[0], expected, rtol=1e-11, atol=1e-13)
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
    assert supports_joined(task)
    expected, *_ = gradients(task, x, y, "loop")
    assert torch.allclose(gradients(task, x, y, "joined")[0], expected, rtol=1e-10, atol=1e-12)


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(28, 28), nn.Linear(28, 28)
        self.second.weight = self.first.weight
        self.head = nn.Linear(28, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.second(self.first(images.squeeze(1)).tanh()).mean(1))


def test_tied_weights() -> None:
    task, x, y = prepare(initialise(Tied, 0))
    expected, *_ = gradients(task, x, y, "loop")
    for way in ("joined", "vmap"):
        assert torch.allclose(gradients(task, x, y, way)[0], expected, rtol=1e-10, atol=1e-12)


def repeated() -> nn.Module:
    layer = nn.Linear(784, 784)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer, nn.Linear(784, 10))


def test_a_layer_in_two_places_keeps_its_parameters() -> None:
    """torch.func's own way of tying names would leave the model with other tensors than it had."""

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


class AsFunction(nn.Module):
    """Uses a layer's weight without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(784, 8), nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(images.flatten(1) @ self.first.weight.T)


def test_joined_refuses_what_it_cannot_tell_apart() -> None:
    task, x, y = prepare(repeated())
    with pytest.raises(ValueError, match="runs twice"):
        gradients(task, x, y, "joined")
    task, x, y = prepare(AsFunction())
    with pytest.raises(ValueError, match="was not run"):
        gradients(task, x, y, "joined")


@pytest.mark.parametrize(
    "model",
    [
        lambda: make("normed"),
        Odd,
        lambda: nn.Sequential(nn.Flatten(), Doubled(784, 10)),
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 3, padding="same"), nn.Flatten(), nn.Linear(1568, 10)
        ),
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"),
            nn.Flatten(),
            nn.Linear(1568, 10),
        ),
    ],
    ids=["batch norm", "recurrent", "subclass", "same padding", "circular padding"],
)
def test_models_that_are_not_joined(model: Callable[[], nn.Module]) -> None:
    assert not supports_joined(prepare(model())[0])
    with pytest.raises(BadRequest, match=r"train\.gradients = joined: .* use auto, loop or vmap"):
        run(simulation(model(), SignFlip(), steps=1, gradients="joined"))


@pytest.mark.parametrize("model", [repeated, AsFunction, Centred, Odd, UsedTwice])
def test_wrong_ways_are_never_chosen(model: Callable[[], nn.Module], own_cache: Path) -> None:
    """Whatever way is the fastest, it must give what the loop gives."""
    task, x, y = prepare(initialise(model, 0))
    task.model.train()
    torch.manual_seed(0)
    way = choose(task, x, y, task.layers.buffers(7, 0, *y.shape))
    measured = json.loads(next(own_cache.iterdir()).read_text())["seconds"]
    assert way in measured
    assert "joined" not in measured
    assert all(map(operator.is_, task.model.parameters(), task.flat.parameters))
    torch.manual_seed(0)
    expected, *_ = gradients(task, x, y, "loop")
    torch.manual_seed(0)
    assert torch.allclose(gradients(task, x, y, way)[0], expected, rtol=1e-10, atol=1e-12)


def test_choice_is_measured_once(own_cache: Path) -> None:
    task, x, y = prepare(make("mlp"))
    buffers = task.layers.buffers(7, 0, *y.shape)
    first = choose(task, x, y, buffers)
    (memory,) = own_cache.iterdir()
    content = json.loads(memory.read_text())
    assert content["way"] == first
    assert content["seconds"].keys() == {"loop", "joined", "vmap"}
    assert first == min(content["seconds"], key=content["seconds"].get)
    for known in WAYS:
        memory.write_text(json.dumps({"way": known}))
        assert choose(task, x, y, buffers) == known
    assert choose(task, x[:, :2], y[:, :2], buffers) in WAYS
    assert len(list(own_cache.iterdir())) == 2  # other batches are another question


@pytest.mark.parametrize("content", ["", "{}", '{"way": "sideways"}', "[1]"])
def test_spoilt_memory_is_measured_again(content: str, own_cache: Path) -> None:
    task, x, y = prepare(make("mlp"))
    buffers = task.layers.buffers(7, 0, *y.shape)
    choose(task, x, y, buffers)
    (memory,) = own_cache.iterdir()
    memory.write_text(content)
    assert choose(task, x, y, buffers) in WAYS
    assert json.loads(memory.read_text())["way"] in WAYS


@pytest.mark.parametrize("way", WAYS)
def test_no_measurement_when_told(way: str, own_cache: Path) -> None:
    module = run(simulation(make("mlp"), SignFlip(), steps=1, gradients=way))
    assert module.way == way
    assert not own_cache.exists()


def test_choosing_changes_nothing(own_cache: Path) -> None:
    """Neither parameters nor running statistics nor masks depend on whether ways were measured."""
    told = run(simulation(make("normed_dropping"), SignFlip(), steps=2, gradients="loop"))
    chose = run(simulation(make("normed_dropping"), SignFlip(), steps=2, gradients="auto"))
    assert own_cache.exists()
    assert chose.way in ("loop", "vmap")
    for name, value in told.model.state_dict().items():
        found = chose.model.state_dict()[name]
        assert torch.allclose(found.double(), value.double(), rtol=1e-9, atol=1e-11), name


def test_any_model_trains() -> None:
    module = simulation(Odd(), SignFlip(), steps=3, weight_decay=0.0)
    before = module.flat.gather()
    run(module)
    assert module.way in ("loop", "vmap")
    after = module.flat.gather()
    assert torch.isfinite(after).all()
    assert not torch.equal(before.double(), after)
    unused = dict(module.model.named_parameters())["unused.weight"]
    assert torch.equal(unused.double().flatten(), _find(module.flat, before, "unused.weight"))


def _find(flat: FlatParameters, vector: Tensor, name: str) -> Tensor:
    names = [n for n, _ in Odd().named_parameters()]
    return list(flat.views(vector))[names.index(name)].flatten().double()
