"""Initial parameters: from the seed alone, scaled, the global random numbers untouched."""

import pytest
import torch
from torch import nn

from lit_byz.models import MODELS, initialise


def vector(model: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("name", ["cnn_cifar", "mlp"])
@pytest.mark.parametrize("scale", [1.0, 2.0, 5.0])
def test_scale_multiplies_all_parameters(name: str, scale: float) -> None:
    plain, scaled = (initialise(MODELS[name], seed=3, scale=mu) for mu in (1.0, scale))
    assert torch.equal(vector(scaled), scale * vector(plain))


def test_batch_norm_is_scaled_too() -> None:
    model = initialise(MODELS["cnn_cifar"], seed=1, scale=3.0)
    weights = [m.weight for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(weights) == 4
    assert all((weight == 3).all() for weight in weights)


def test_equals_pytorch_default_under_the_same_seed() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        expected = vector(MODELS["cnn_mnist"]())
    assert torch.equal(vector(initialise(MODELS["cnn_mnist"], seed=7)), expected)


def test_comes_from_the_seed_alone_and_leaves_the_global_state() -> None:
    before = torch.random.get_rng_state()
    first = vector(initialise(MODELS["logreg"], seed=1))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(5)
    assert torch.equal(vector(initialise(MODELS["logreg"], seed=1)), first)
    assert not torch.equal(vector(initialise(MODELS["logreg"], seed=2)), first)


def test_initialisation_in_a_constructor_counts() -> None:
    class Ones(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            nn.init.ones_(self.weight)

    assert (initialise(Ones, seed=1, scale=4.0).weight == 4).all()


@pytest.mark.parametrize(
    ("seed", "scale"), [(-1, 1.0), (1.5, 1.0), (1, 0.0), (1, float("inf")), (1, float("nan"))]
)
def test_bad_arguments(seed: int, scale: float) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^initialise: (seed|scale) must be "):
        initialise(MODELS["logreg"], seed, scale)


@pytest.mark.parametrize("layer", [nn.LazyLinear(3), nn.LazyBatchNorm1d(affine=False)])
def test_layers_without_sizes(layer: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"^initialise: Sequential has layers without sizes, such"):
        initialise(lambda: nn.Sequential(layer), seed=1)
