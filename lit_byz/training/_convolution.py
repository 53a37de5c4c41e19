"""Gradients of convolutions: the weights' for many workers from one pass, and the images'.

Where compiled code can be had it does both, in about half of torch's time for the few channels of
small networks.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lit_byz import _native

# From so many channels on, in whole vectors, torch's own outputs and gradients of images are the
# faster ones.
MANY_CHANNELS, VECTOR = 32, 16


def add_gradients(
    layer: nn.Conv2d,
    inputs: Tensor,
    delta: Tensor,
    share: float,
    weights: Tensor | None,
    biases: Tensor | None,
) -> None:
    """Add ``share`` times the workers' gradients to weights (h, *shape) and biases (h, outputs).

    ``inputs`` and ``delta``, the loss's gradient with respect to the layer's output, hold the
    examples of all workers, one worker's after the other's. What is None is not wanted.
    """
    if weights is not None and _compiled(layer, inputs, delta, weights, biases):
        _add_compiled(layer, inputs, delta, share, weights, biases)
        return
    if weights is not None:
        geometry = (layer.stride, layer.padding, layer.dilation, False, [0, 0], layer.groups)
        parts = zip(inputs.chunk(len(weights)), delta.chunk(len(weights)), strict=True)
        for own, (x, d) in zip(weights, parts, strict=True):
            _, gradient, _ = torch.ops.aten.convolution_backward(
                d, x, layer.weight, None, *geometry, [False, True, False]
            )
            own.add_(gradient, alpha=share)
    if biases is not None:
        sums = delta.unflatten(0, (len(biases), -1)).sum((1, 3, 4))
        biases.add_(sums, alpha=share)


def many_channels(layer: nn.Conv2d) -> bool:
    """Whether torch is the faster one for all that sums up a layer's input channels alone."""
    return layer.in_channels >= MANY_CHANNELS and layer.in_channels % VECTOR == 0


def with_fast_backward(layer: nn.Conv2d, inputs: Tensor, output: Tensor) -> Tensor:
    """``output``, whose gradient goes on to the images in the fastest way; the weights get none."""
    if many_channels(layer) or not inputs.requires_grad:
        return output
    if not _compiled(layer, inputs, output, layer.weight):
        return output
    fast: Tensor = _Backward.apply(inputs, output.detach(), layer)
    return fast


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, output: Tensor, layer: nn.Conv2d) -> Tensor:
        ctx.layer, ctx.shape = layer, inputs.shape
        return output.view_as(output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, delta: Tensor) -> tuple[Tensor, None, None]:
        layer, weights = ctx.layer, ctx.layer.weight
        delta = delta.contiguous(memory_format=torch.channels_last)
        images = torch.empty(ctx.shape, dtype=delta.dtype, memory_format=torch.channels_last)
        _native.function("image_gradients", delta.dtype)(
            delta,
            weights,
            integers(0, *weights.stride()),
            _shape(layer, images, delta, workers=1),
            images,
            torch.get_num_threads(),
        )
        return images, None, None


def _compiled(layer: nn.Conv2d, *tensors: Tensor | None) -> bool:
    """Whether compiled code can do this layer."""
    kinds = {(x.device.type, x.dtype) for x in tensors if x is not None}
    return (
        layer.groups == 1
        and kinds in ({("cpu", dtype)} for dtype in _native.SUFFIX)
        and _native.library() is not None
    )


def _add_compiled(
    layer: nn.Conv2d,
    inputs: Tensor,
    delta: Tensor,
    share: float,
    weights: Tensor,
    biases: Tensor | None,
) -> None:
    inputs = inputs.contiguous(memory_format=torch.channels_last)
    delta = delta.contiguous(memory_format=torch.channels_last)
    _native.function("weight_gradients", delta.dtype)(
        delta,
        inputs,
        _shape(layer, inputs, delta, len(weights)),
        len(weights),
        weights,
        integers(*weights.stride()),
        biases,
        0 if biases is None else biases.stride(0),
        share,
        torch.get_num_threads(),
    )


def _shape(layer: nn.Conv2d, images: Tensor, delta: Tensor, workers: int) -> Any:
    return shape_of(layer, images.shape, delta.shape[1:], workers)


def shape_of(layer: nn.Conv2d, images: Sequence[int], output: Sequence[int], workers: int) -> Any:
    """The struct ``Shape`` of the compiled code: images (N, C, H, W), outputs (C, H, W)."""
    return integers(
        images[0] // workers,
        *output,
        *images[1:],
        *layer.kernel_size,
        *layer.stride,
        *map(int, layer.padding),
        *layer.dilation,
    )


def integers(*values: int) -> Any:
    """An array or a struct of nothing but integers."""
    return (ctypes.c_int64 * len(values))(*values)
