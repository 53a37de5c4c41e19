"""The default method of computing gradients: the same in every process, and never a wrong one."""

import ast
import copy
import operator
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import lit_byz.training
from lit_byz.attacks import SignFlip
from lit_byz.errors import BadRequest
from lit_byz.models import MODELS, initialise
from lit_byz.training import gradient_methods
from lit_byz.training._joined import supports_joined
from lit_byz.training.gradient_methods import default_method, table
from lit_byz.training.gradients import METHODS
from tests.training._models import (
    AsFunction,
    Centred,
    Doubled,
    Odd,
    Tied,
    UsedTwice,
    make,
    repeated,
)
from tests.training._setup import run, simulation

IMAGES = torch.zeros(1, 1, 28, 28)


class Noisy(nn.Module):
    """Draws numbers that are the same for all examples of a pass."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(images.flatten(1) * torch.rand(()))


class UsedBesides(nn.Module):
    """Runs a layer once, and uses its weight a second time."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        flat = images.flatten(1)
        return self.head(flat) + flat.tanh() @ self.head.weight.T


class Branching(nn.Module):
    """Looks at its numbers to decide what to do."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        output = self.head(images.flatten(1))
        return output if output.sum() > 0 else 2 * output


class Broken(nn.Module):
    """Has an error that training shall report."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        return {"head": self.head}["body"](images.flatten(1))


def layer_norm() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 8), nn.LayerNorm(8), nn.Linear(8, 10))


def weight_norm() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(784, 10)))


def zero_head() -> nn.Module:
    """Initial parameters with which no gradient passes the last layer."""
    model = Centred()
    wrapped = nn.Sequential(model, nn.Linear(10, 10))
    nn.init.zeros_(wrapped[1].weight)
    return wrapped


JOINED: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: make("mlp"),
    "convolutions": lambda: make("cnn_mnist"),
    "dropout": lambda: make("dropping"),
    "tied weights": Tied,
}
LOOP: dict[str, Callable[[], nn.Module]] = {
    "a layer that runs twice": repeated,
    "a weight used as a function": AsFunction,
    "a weight used besides": UsedBesides,
    "a subclass": lambda: nn.Sequential(nn.Flatten(), Doubled(784, 10)),
    "batch norm": lambda: make("normed"),
    "layer norm": layer_norm,
    "weight norm": weight_norm,
    "recurrent": Odd,
    "examples that depend on each other": Centred,
    "the same, unseen with its parameters": zero_head,
    "dropout in two places": UsedTwice,
    "numbers drawn on its own": Noisy,
    "an error": Broken,
}
EITHER = {**dict.fromkeys(JOINED, "joined"), **dict.fromkeys(LOOP, "loop")}


def default(model: nn.Module, simple: bool = True, device: str = "cpu") -> str:
    return default_method("my_models.Mine", model, IMAGES, device=device, simple=simple)


@pytest.mark.parametrize(("kind", "method"), EITHER.items())
def test_models_that_are_not_listed(kind: str, method: str) -> None:
    """The same answer every time, with any number of threads and any initial parameters."""
    make_model = {**JOINED, **LOOP}[kind]
    first, small, large = (initialise(make_model, 1, scale) for scale in (1.0, 1e-12, 1e12))
    found = {default(first), default(first, device="cuda"), default(small)}
    found.add(default(initialise(make_model, 2).double()))
    torch.set_num_threads(2)
    found.add(default(large))
    assert default(first, simple=False) == "loop"
    assert found == {method}


def describe(model: nn.Module) -> list[tuple[object, ...]]:
    return [
        (
            str(module),
            module.training,
            getattr(module, "momentum", None),
            list(module._forward_hooks),
            list(module._forward_pre_hooks),
        )
        for module in model.modules()
    ]


@pytest.mark.parametrize("kind", EITHER)
def test_nothing_is_changed(kind: str) -> None:
    model = initialise({**JOINED, **LOOP}[kind], 0).eval()
    model.register_forward_pre_hook(lambda module, inputs: None)
    tensors = [*model.parameters(), *model.buffers()]
    before = copy.deepcopy(model.state_dict())
    described = describe(model)
    state = torch.get_rng_state()
    default(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(operator.is_, [*model.parameters(), *model.buffers()], tensors))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert describe(model) == described


def test_table_covers_the_registered_models() -> None:
    assert set(table()) == set(MODELS)
    for name, devices in table().items():
        shape = (1, 28, 28) if name == "cnn_mnist" else (3, 32, 32)
        model, example = MODELS[name](shape=shape, classes=10), torch.zeros(1, *shape)
        assert set(devices) == {"cpu", "cuda"}
        for device, entry in devices.items():
            chosen = default_method(name, model, example, device=device, simple=True)
            assert chosen == entry["method"]
            assert chosen in METHODS
            assert chosen != "joined" or supports_joined(model)
            assert default_method(name, model, example, device=device, simple=False) == "loop"
            if chosen not in entry:  # not measured
                unlisted = default_method("a.b", model, example, device=device, simple=True)
                assert chosen == unlisted


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("logreg", "joined"),
        ("mlp", "joined"),
        ("cnn_mnist", "joined"),
        ("cnn_cifar", "loop"),
        ("resnet18", "loop"),
    ],
)
def test_defaults_on_a_processor(name: str, method: str) -> None:
    assert table()[name]["cpu"]["method"] == method


@pytest.mark.slow
def test_no_clock_and_no_lightning() -> None:
    """A clock could decide; Lightning takes seconds, and configs ask for the default method."""
    folder = Path(lit_byz.training.__file__).parent
    for name in ("gradient_methods", "gradients", "_joined", "_task"):
        tree = list(ast.walk(ast.parse((folder / f"{name}.py").read_text())))
        names = {
            *(alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names),
            *(node.module for node in tree if isinstance(node, ast.ImportFrom)),
        }
        assert not {"time", "timeit", "lit_byz._cache"} & names
    code = f"import sys, {gradient_methods.__name__}; sys.exit('lightning' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_is_asked_for_is_taken(method: str) -> None:
    module = run(simulation(make("mlp"), SignFlip(), steps=1, gradients=method))
    assert module.gradient_method == method


@pytest.mark.parametrize("name", ["mlp", "normed_dropping"])
def test_choosing_changes_no_bit(name: str) -> None:
    """Parameters and running statistics are those of a run that was told the same method."""
    chose = run(simulation(make(name), SignFlip(), steps=2))
    assert chose.gradient_method == {"mlp": "joined", "normed_dropping": "loop"}[name]
    method = chose.gradient_method
    told = run(simulation(make(name), SignFlip(), steps=2, gradients=method))
    for key, value in told.model.state_dict().items():
        assert torch.equal(chose.model.state_dict()[key], value), key


@pytest.mark.parametrize(
    ("model", "method", "complaint"),
    [
        (lambda: make("normed"), "joined", "takes models of Linear and Conv2d layers"),
        (Odd, "joined", "takes models of Linear and Conv2d layers"),
        (lambda: nn.Sequential(nn.Flatten(), Doubled(784, 10)), "joined", "takes models of"),
        (
            lambda: nn.Sequential(
                nn.Conv2d(1, 2, 3, padding="same"), nn.Flatten(), nn.Linear(1568, 10)
            ),
            "joined",
            "takes models of",
        ),
        (
            lambda: nn.Sequential(
                nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"),
                nn.Flatten(),
                nn.Linear(1568, 10),
            ),
            "joined",
            "takes models of",
        ),
        (repeated, "joined", "runs twice"),
        (AsFunction, "joined", "was not run"),
        (Centred, "joined", "gives other gradients than loop"),
        (Branching, "vmap", "data-dependent control flow"),
    ],
    ids=[
        "batch norm",
        "recurrent",
        "subclass",
        "same padding",
        "circular padding",
        "twice",
        "function",
        "dependent examples",
        "branches",
    ],
)
def test_methods_that_cannot_work(
    model: Callable[[], nn.Module], method: str, complaint: str
) -> None:
    expected = rf"train\.gradients = {method}: .*{complaint}.*; use auto or loop"
    with pytest.raises(BadRequest, match=expected):
        run(simulation(model(), SignFlip(), steps=1, gradients=method))


@pytest.mark.parametrize("model", [UsedTwice, Noisy, lambda: make("normed_dropping")])
def test_vmap_takes_models_that_draw(model: Callable[[], nn.Module]) -> None:
    """Other draws than the loop's are no reason to refuse a method that was asked for."""
    module = run(simulation(model(), SignFlip(), steps=1, gradients="vmap"))
    assert module.gradient_method == "vmap"
