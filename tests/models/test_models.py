"""Parameter counts of the paper, shapes, and per-worker gradients through every model."""

import pytest
import torch
from torch.func import functional_call, grad, vmap

from lit_byz.models import MODELS, parameter_count

COUNTS = {
    "cnn_mnist": ((1, 28, 28), 431_080),
    "cnn_cifar": ((3, 32, 32), 1_310_922),
    "resnet18": ((3, 32, 32), 11_173_962),
    "logreg": ((1, 28, 28), 7_850),
    "mlp": ((1, 28, 28), 79_510),
}


def test_every_model_has_a_count() -> None:
    assert set(COUNTS) == set(MODELS)


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_count(name: str) -> None:
    shape, count = COUNTS[name]
    assert parameter_count(MODELS[name](shape=shape, classes=10)) == count
    assert parameter_count(MODELS[name]()) == count


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_fits_the_images_of_every_data_set(name: str, shape: tuple[int, int, int]) -> None:
    model = MODELS[name](shape=shape, classes=7).eval()
    with torch.no_grad():
        returned = model(torch.randn(3, *shape))
    assert returned.shape == (3, 7)
    sums_to_one = torch.allclose(returned.exp().sum(dim=1), torch.ones(3), atol=1e-5)
    assert model.output == ("log_probabilities" if sums_to_one else "logits")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n == "resnet18" else ()) for n in COUNTS],
)
def test_vmap_gradients_equal_a_loop_over_workers(name: str) -> None:
    shape = COUNTS[name][0]
    torch.manual_seed(0)
    model = MODELS[name](shape=shape).eval()
    parameters = {key: value.detach() for key, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def loss(parameters: dict, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        outputs = functional_call(model, (parameters, buffers), (images,))
        return torch.nn.functional.cross_entropy(outputs, labels)

    images, labels = torch.randn(2, 2, *shape), torch.randint(10, (2, 2))
    stacked = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels)
    for worker in range(2):
        alone = grad(loss)(parameters, images[worker], labels[worker])
        for key, value in alone.items():
            torch.testing.assert_close(stacked[key][worker], value, atol=1e-5, rtol=1e-4)


def test_hidden_layers_of_mlp() -> None:
    model = MODELS["mlp"](shape=(1, 2, 2), classes=3, hidden=[5, 6])
    assert parameter_count(model) == (4 * 5 + 5) + (5 * 6 + 6) + (6 * 3 + 3)
    assert parameter_count(MODELS["mlp"](shape=(1, 2, 2), classes=3, hidden=[])) == 4 * 3 + 3


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "cnn_mnist",
            {"shape": (1, 8, 8)},
            "cnn_mnist: shape's height must be an int >= 16, got 8",
        ),
        ("cnn_cifar", {"shape": (3, 32, 2)}, "cnn_cifar: shape's width must be an int >= 4, got 2"),
        ("cnn_cifar", {"dropout": 1.0}, "cnn_cifar: dropout must be a number in [0, 1), got 1.0"),
        (
            "cnn_mnist",
            {"shape": (28, 28)},
            "cnn_mnist: shape must be (channels, height, width), got (28, 28); logreg and mlp take "
            "inputs of any shape",
        ),
        ("resnet18", {"classes": 1}, "resnet18: classes must be an int >= 2, got 1"),
        ("mlp", {"hidden": [0]}, "mlp: each width in hidden must be an int >= 1, got 0"),
    ],
)
def test_bad_arguments(name: str, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        MODELS[name](**arguments)
    assert str(raised.value) == message
