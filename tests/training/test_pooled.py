"""Convolution, ReLU and pooling as one layer, against torch's own three in float64."""

import copy
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from lit_byz import _native
from lit_byz.training._joined import joined
from lit_byz.training._pooled import PooledConvolution, Unfit, outputs, pooled_convolutions
from lit_byz.training._task import FlippedLabels
from lit_byz.training.gradients import loop
from tests.training._models import make
from tests.training.test_gradients import prepare

pytestmark = pytest.mark.compiler

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def cases(draw: Any) -> tuple[nn.Sequential, Tensor, int]:
    """The three layers, images for all workers, the workers."""
    kernel, stride, dilation, window = draw(PAIRS), draw(PAIRS), draw(PAIRS), draw(PAIRS)
    padding = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    # Output channels: one vector, several, and more than fit into the registers at once.
    layer = nn.Conv2d(
        draw(st.sampled_from([1, 3, 7, 20])),
        draw(st.sampled_from([1, 5, 16, 33, 50, 70, 130])),
        kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        bias=draw(st.booleans()),
        dtype=torch.float64,
    )
    # Enough pixels for a window, and some that fill no other.
    seen = [
        1 + (k - 1) * d + (w - 1) * s
        for k, d, w, s in zip(kernel, dilation, window, stride, strict=True)
    ]
    height, width = (
        max(s - 2 * p, 1) + draw(st.integers(0, 6)) for s, p in zip(seen, padding, strict=True)
    )
    workers, examples = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    torch.manual_seed(draw(st.integers(0, 99)))
    images = torch.randn(workers * examples, layer.in_channels, height, width, dtype=torch.float64)
    if draw(st.booleans()):
        layer = layer.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    return nn.Sequential(layer, nn.ReLU(), nn.MaxPool2d(window)), images, workers


@given(cases())
def test_outputs_and_gradients_are_torchs(case: tuple[nn.Sequential, Tensor, int]) -> None:
    assert _native.library() is not None, "these tests need a C++ compiler"
    layers, images, workers = case
    layer = layers[0]
    own = images.clone().requires_grad_()
    expected = layers(own)
    delta = torch.randn_like(expected) * (torch.rand_like(expected) < 0.8)
    weights = torch.ones(workers, *layer.weight.shape, dtype=torch.float64)
    biases = None if layer.bias is None else torch.ones(workers, len(layer.bias)).double()
    seen = images.clone().requires_grad_()
    with pooled_convolutions(layers, images):
        block = layers[0]
        assert isinstance(block, PooledConvolution)
        output = layers(seen)
        (found,) = torch.autograd.grad(output, seen, delta)
        with torch.no_grad():
            block.add_gradients(images, delta, 0.3, workers, weights, biases)
    assert layers[0] is layer
    close = {"rtol": 1e-11, "atol": 1e-11}
    torch.testing.assert_close(output, expected, **close)
    torch.testing.assert_close(found, torch.autograd.grad(expected, own, delta)[0], **close)
    parts = zip(images.chunk(workers), delta.chunk(workers), strict=True)
    for worker, (x, d) in enumerate(parts):
        gradients = torch.autograd.grad(layers(x), list(layer.parameters()), d)
        torch.testing.assert_close(weights[worker], 1 + 0.3 * gradients[0], **close)
        if biases is not None:
            torch.testing.assert_close(biases[worker], 1 + 0.3 * gradients[1], **close)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    rows = []
    before = torch.get_num_threads()
    for count in (1, threads):
        torch.set_num_threads(count)
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Conv2d(3, 20, 3), nn.ReLU(), nn.MaxPool2d(2))
        images = torch.randn(6, 3, 9, 9).requires_grad_()
        weights = torch.zeros(2, 20, 3, 3, 3)
        with pooled_convolutions(layers, images):
            output = layers(images)
            delta = torch.randn(output.shape)
            (found,) = torch.autograd.grad(output, images, delta)
            layers[0].add_gradients(images.detach(), delta, 1.0, 2, weights, None)
        rows.append(torch.cat([output.flatten(), found.flatten(), weights.flatten()]))
    torch.set_num_threads(before)
    assert torch.equal(*rows)


def with_pool(**settings: Any) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2, **settings))


@pytest.mark.parametrize(
    "layers",
    [
        with_pool(stride=1),
        with_pool(padding=1),
        with_pool(dilation=2),
        with_pool(ceil_mode=True),
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.MaxPool2d(2)),
        nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Sequential(nn.Conv2d(1, 4, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
        with_pool().double(),
    ],
    ids=["overlap", "padding", "dilation", "ceil", "tanh", "groups", "same", "precision"],
)
def test_other_layers_are_left_alone(layers: nn.Sequential) -> None:
    before = list(layers)
    with pooled_convolutions(layers, torch.zeros(2, 2, 8, 8)):
        assert list(layers) == before


def test_layers_that_are_watched_are_left_alone() -> None:
    layers, images = with_pool(), torch.zeros(2, 1, 8, 8)
    with pooled_convolutions(layers, images):
        assert isinstance(layers[0], PooledConvolution)
    layers[1].register_forward_hook(lambda module, inputs, output: None)
    with pooled_convolutions(layers, images):
        assert isinstance(layers[0], nn.Conv2d)
    with _native.plain_torch(), pooled_convolutions(with_pool(), images):
        assert isinstance(layers[0], nn.Conv2d)
    with torch.autocast("cpu", torch.bfloat16), pooled_convolutions(with_pool(), images):
        assert isinstance(layers[0], nn.Conv2d)


def test_without_gradients_wide_layers_are_torchs() -> None:
    images = torch.zeros(2, 32, 8, 8)
    layers = nn.Sequential(nn.Conv2d(32, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
    with pooled_convolutions(layers, images, forward_only=True):
        assert isinstance(layers[0], nn.Conv2d)
    with pooled_convolutions(layers, images):
        assert isinstance(layers[0], PooledConvolution)


def test_outputs_for_evaluation() -> None:
    """The same as the model's own, also where its numbers are not finite."""
    model, images = make("cnn_mnist").eval(), torch.randn(3, 1, 28, 28)
    with torch.inference_mode():
        torch.testing.assert_close(outputs(model, images), model(images), rtol=1e-5, atol=1e-5)
        images[1] = math.inf
        assert outputs(model, images).isfinite().all(1).tolist() == [True, False, True]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 3e38])
def test_numbers_that_are_not_finite(bad: float) -> None:
    """Compiled code does not compare them, and what each worker sends is what the loop gives."""
    layers = with_pool()
    with torch.no_grad():
        layers[0].weight[2] = bad
    with pooled_convolutions(layers, torch.ones(2, 1, 8, 8)), pytest.raises(Unfit):
        layers(torch.ones(2, 1, 8, 8))
    task, x, y = prepare(make("cnn_mnist"), torch.float32)
    with torch.no_grad():
        task.model.layers[0].weight[3] = bad
    rows = {}
    for method in (joined, loop):
        rows[method] = torch.zeros(len(x), task.flat.size)
        vector = torch.zeros(task.flat.size)
        method(task, rows[method], 0.5, x, y, {}, FlippedLabels(9 - y, vector))
        assert not vector.isfinite().all()
    assert all(not row.isfinite().all() for row in rows[joined])
    assert all(not row.isfinite().all() for row in rows[loop])


def test_one_worker_with_numbers_that_are_not_finite() -> None:
    """The others' gradients are theirs."""
    task, x, y = prepare(make("cnn_mnist"), torch.float32)
    x = x.clone()
    x[1, 0] = math.inf
    rows = [torch.zeros(len(x), task.flat.size) for _ in range(2)]
    for method, into in zip((joined, loop), rows, strict=True):
        method(task, into, 1.0, x, y, {})
    finite = [into.isfinite().all(1).tolist() for into in rows]
    assert finite[0] == finite[1] == [True, False, True, True]
    torch.testing.assert_close(rows[0][0], rows[1][0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_frozen_parameters(frozen: str) -> None:
    model = make("cnn_mnist")
    getattr(model.layers[3], frozen).requires_grad_(False)
    task, x, y = prepare(model)
    rows = [torch.zeros(len(x), task.flat.size).double() for _ in range(2)]
    vectors = [torch.zeros(task.flat.size).double() for _ in range(2)]
    for method, into, vector in zip((joined, loop), rows, vectors, strict=True):
        method(task, into, 0.5, x, y, {}, FlippedLabels(9 - y, vector))
    torch.testing.assert_close(*rows, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(*vectors, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [(1, 2, 28, 28), (1, 1, 3, 3), (1, 28, 28)])
def test_images_that_torch_refuses(size: tuple[int, ...]) -> None:
    """The model is as it was, and torch's own layers tell what is wrong."""
    model = make("cnn_mnist")
    names, before = dict(model.named_modules()), copy.deepcopy(model.state_dict())
    with pooled_convolutions(model, torch.zeros(1, 1, 28, 28)):
        assert model.state_dict().keys() == before.keys()
    with pytest.raises(Unfit), pooled_convolutions(model, torch.zeros(1, 1, 28, 28)):
        model(torch.zeros(size))
    assert dict(model.named_modules()) == names
