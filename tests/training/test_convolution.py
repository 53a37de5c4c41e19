"""Gradients of convolutions, compiled and plain, against autograd in float64."""

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from lit_byz import _native
from lit_byz.models import CNNMnist
from lit_byz.training import _convolution
from lit_byz.training._convolution import add_gradients, with_fast_backward
from lit_byz.training._joined import _frozen, _probes

pytestmark = pytest.mark.compiler

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def cases(draw: Any) -> tuple[nn.Conv2d, Tensor, int]:
    """A convolution, images for all workers in the layout that training uses, the workers."""
    kernel, stride, dilation = draw(PAIRS), draw(PAIRS), draw(PAIRS)
    padding = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    # Output channels: one vector, several, and more than fit into the registers at once.
    layer = nn.Conv2d(
        draw(st.sampled_from([1, 3, 7, 20])),
        draw(st.sampled_from([1, 5, 16, 33, 50, 70, 130])),
        kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        dtype=torch.float64,
    )
    seen = [1 + (k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    height, width = (
        max(s - 2 * p, 1) + draw(st.integers(0, 6)) for s, p in zip(seen, padding, strict=True)
    )
    workers, examples = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    torch.manual_seed(draw(st.integers(0, 99)))
    images = torch.randn(workers * examples, layer.in_channels, height, width, dtype=torch.float64)
    if draw(st.booleans()):
        layer = layer.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    return layer, images.requires_grad_(), workers


def expected(
    layer: nn.Conv2d, images: Tensor, delta: Tensor, workers: int
) -> tuple[Tensor, Tensor]:
    """Each worker's gradients by autograd, one worker after the other."""
    found = []
    for x, d in zip(images.detach().chunk(workers), delta.chunk(workers), strict=True):
        assert layer.bias is not None
        found.append(torch.autograd.grad(layer(x), [layer.weight, layer.bias], d))
    weights, biases = zip(*found, strict=True)
    return torch.stack(weights), torch.stack(biases)


@pytest.fixture
def compiled() -> None:
    assert _native.library() is not None, "these tests need a C++ compiler"


@given(cases())
def test_compiled_gradients_are_autograds(case: tuple[nn.Conv2d, Tensor, int]) -> None:
    assert _native.library() is not None
    layer, images, workers = case
    output = layer(images)
    delta = torch.randn_like(output)
    weights = torch.ones(workers, *layer.weight.shape, dtype=torch.float64)
    biases = torch.ones(workers, layer.out_channels, dtype=torch.float64)
    with torch.no_grad():
        add_gradients(layer, images, delta, 0.3, weights, biases)
    by_autograd = expected(layer, images, delta, workers)
    for found, gradient in zip((weights, biases), by_autograd, strict=True):
        torch.testing.assert_close(found, 1 + 0.3 * gradient, rtol=1e-11, atol=1e-11)
    fast = with_fast_backward(layer, images, output)
    assert fast is not output
    torch.testing.assert_close(fast, output, rtol=0, atol=0)
    (ours,) = torch.autograd.grad(fast, images, delta)
    (theirs,) = torch.autograd.grad(output, images, delta)
    torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


def test_blocks_of_pixels_that_do_not_fill_the_image(compiled: None) -> None:
    """Output gradients are read some rows at a time; the last rows of an image are fewer."""
    torch.manual_seed(5)
    layer = nn.Conv2d(2, 33, 3, dtype=torch.float64)
    images = torch.randn(4, 2, 31, 40, dtype=torch.float64, requires_grad=True)
    delta = torch.randn_like(layer(images))
    for found, value in zip(
        workers_gradients(layer, images, delta, workers=2),
        expected(layer, images, delta, workers=2),
        strict=True,
    ):
        torch.testing.assert_close(found, value, rtol=1e-11, atol=1e-11)


def test_training_takes_the_fast_way_back(compiled: None) -> None:
    model = CNNMnist().to(memory_format=torch.channels_last)
    with _frozen(model), _probes(model) as probes:
        model(torch.randn(2, 1, 28, 28))
    first, second, *_ = (type(output.grad_fn).__name__ for _, _, output in probes.values())
    assert first == "NoneType"  # what comes in needs no gradient
    assert second == "_BackwardBackward"


def small(dtype: torch.dtype = torch.float32) -> tuple[nn.Conv2d, Tensor, Tensor]:
    """The second layer of the paper's MNIST network, twelve images, some output gradients."""
    torch.manual_seed(3)
    layer = nn.Conv2d(20, 50, 5, dtype=dtype).to(memory_format=torch.channels_last)
    images = torch.randn(12, 20, 12, 12, dtype=dtype).contiguous(memory_format=torch.channels_last)
    return layer, images, torch.randn_like(layer(images)).detach()


def workers_gradients(
    layer: nn.Conv2d, images: Tensor, delta: Tensor, workers: int = 4
) -> tuple[Tensor, Tensor]:
    """In rows of a longer matrix, as the momentums are."""
    size = layer.weight.numel()
    rows = torch.zeros(workers, size + layer.out_channels + 7, dtype=delta.dtype)
    outputs, inputs, *kernel = layer.weight.shape
    weights = rows[:, 3 : 3 + size].unflatten(1, (outputs, *kernel, inputs)).movedim(-1, -3)
    biases = rows[:, 3 + size : -4]
    with torch.no_grad():
        add_gradients(layer, images, delta, 1.0, weights, biases)
    assert not rows[:, :3].any()
    assert not rows[:, -4:].any()
    return weights, biases


def test_float32_is_as_exact_as_torch(use_kernels: Callable[[bool], None]) -> None:
    layer, images, delta = small()
    exact = expected(layer.double(), images.double(), delta.double(), 4)
    layer.float()
    for compiled in (True, False):
        use_kernels(compiled)
        for found, value in zip(workers_gradients(layer, images, delta), exact, strict=True):
            error = (found - value).norm() / value.norm()
            assert error < 2e-6, (compiled, error)


def test_the_number_of_threads_changes_no_bit(compiled: None) -> None:
    layer, images, delta = small()
    images.requires_grad_()
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            fast = with_fast_backward(layer, images, layer(images))
            seen = torch.autograd.grad(fast, images, delta)
            found.append([*workers_gradients(layer, images, delta), *seen])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_numbers_that_are_not_finite_stay_with_their_worker(compiled: None) -> None:
    layer, images, delta = small()
    clean = workers_gradients(layer, images, delta)
    delta[3:6] = float("inf")
    images.requires_grad_()
    for found, value in zip(workers_gradients(layer, images, delta), clean, strict=True):
        assert not torch.isfinite(found[1]).all()
        others = [0, 2, 3]
        assert torch.equal(found[others], value[others])
    fast = with_fast_backward(layer, images, layer(images))
    (gradient,) = torch.autograd.grad(fast, images, delta)
    whole = torch.isfinite(gradient).flatten(1).all(1)
    assert whole.tolist() == [True] * 3 + [False] * 3 + [True] * 6


def at_the_end_of_memory(delta: Tensor) -> Tensor:
    """A copy, channels last, after which comes a page that may not be read."""
    numbers, page = delta.numel(), mmap.PAGESIZE
    size = -(-numbers * 4 // page) * page
    memory = mmap.mmap(-1, size + page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    unreadable = ctypes.c_void_p(begin + size), ctypes.c_size_t(page), 0
    assert ctypes.CDLL(None).mprotect(*unreadable) == 0
    place = (ctypes.c_float * numbers).from_buffer(memory, size - numbers * 4)
    examples, outputs, height, width = delta.shape
    copy = torch.frombuffer(place, dtype=torch.float32).view(examples, height, width, outputs)
    return copy.permute(0, 3, 1, 2).copy_(delta)


@pytest.mark.parametrize(("outputs", "size"), [(50, 12), (3, 5), (17, 5), (70, 6)])
def test_nothing_is_read_past_the_end(outputs: int, size: int, compiled: None) -> None:
    layer = nn.Conv2d(4, outputs, 5).to(memory_format=torch.channels_last)
    images = torch.randn(12, 4, size, size)
    delta = torch.randn_like(layer(images)).detach()
    at_the_end = at_the_end_of_memory(delta)
    found = (workers_gradients(layer, images, d) for d in (at_the_end, delta))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    images.requires_grad_()
    fast = with_fast_backward(layer, images, layer(images))
    a, b = (torch.autograd.grad(fast, images, d, retain_graph=True) for d in (at_the_end, delta))
    assert torch.equal(a[0], b[0])


def test_only_what_is_wanted(use_kernels: Callable[[bool], None]) -> None:
    layer, images, delta = small(torch.float64)
    weights, biases = expected(layer, images, delta, 4)
    for compiled in (True, False):
        use_kernels(compiled)
        found = torch.zeros_like(weights), torch.zeros_like(biases)
        with torch.no_grad():
            add_gradients(layer, images, delta, 1.0, found[0], None)
            assert not found[1].any()
            add_gradients(layer, images, delta, 1.0, None, found[1])
        for ours, theirs in zip(found, (weights, biases), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


def test_groups_and_other_types_take_torch(compiled: None) -> None:
    grouped = nn.Conv2d(4, 6, 3, groups=2)
    images = torch.randn(6, 4, 5, 5, requires_grad=True)
    output = grouped(images)
    assert with_fast_backward(grouped, images, output) is output
    weights, biases = expected(grouped, images, torch.ones_like(output), 2)
    found = torch.zeros_like(weights), torch.zeros_like(biases)
    with torch.no_grad():
        add_gradients(grouped, images, torch.ones_like(output), 1.0, *found)
    torch.testing.assert_close(found[0], weights)
    torch.testing.assert_close(found[1], biases)
    assert not _convolution._compiled(nn.Conv2d(4, 6, 3), images.bfloat16())


def test_torch_keeps_the_images_of_many_channels(compiled: None) -> None:
    images = torch.randn(2, 32, 5, 5, requires_grad=True)
    layer = nn.Conv2d(32, 6, 3)
    output = layer(images)
    assert with_fast_backward(layer, images, output) is output
