"""Convolution, ReLU and max pooling as one layer, where compiled code can do it.

What pooling drops is neither kept nor differentiated: the images' and the weights' gradients come
from the one pixel in each window that counts. A model's layers are replaced for the time of a pass.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lit_byz import _native
from lit_byz.training._convolution import integers, many_channels, shape_of

# A place in a window is kept in a byte.
LARGEST_WINDOW = 127


class Unfit(Exception):
    """What is left to torch's own layers: images that they refuse, numbers that are not finite."""


class Pooled(NamedTuple):
    """What came of a pass: the output, and from which place of its window each number came."""

    output: Tensor
    chosen: Tensor


class PooledConvolution(nn.Module):
    """A convolution, a ReLU and a max pooling, in this order, with the convolution's parameters.

    ``chosen`` is the last pass's, for :meth:`add_gradients`.
    """

    chosen: Tensor

    def __init__(self, layer: nn.Conv2d, pool: nn.MaxPool2d) -> None:
        super().__init__()
        self._parameters = layer._parameters
        self._layer = (layer,)  # in a tuple, so that it is no module of this one
        self.window = _pair(pool.kernel_size)

    @property
    def layer(self) -> nn.Conv2d:
        return self._layer[0]

    def forward(self, images: Tensor) -> Tensor:
        layer = self.layer
        right = images.dim() == 4 and images.shape[1] == layer.in_channels and images.is_cpu
        if not right or images.dtype != layer.weight.dtype:
            raise Unfit
        images = images.contiguous(memory_format=torch.channels_last)
        output, self.chosen = _Pass.apply(images, self)
        return output

    def run(self, images: Tensor) -> Pooled:
        """The output for images with channels last, without autograd."""
        layer, shape = self.layer, self._shape(images)
        size = (len(images), shape[1], shape[2] // self.window[0], shape[3] // self.window[1])
        if min(size) < 1:
            raise Unfit
        output, chosen = _empty(size, images.dtype), _empty(size, torch.int8)
        finite = _native.function("pooled_forward", images.dtype)(
            images,
            layer.weight,
            integers(0, *layer.weight.stride()),
            layer.bias,
            shape,
            *self.window,
            output,
            chosen,
            torch.get_num_threads(),
        )
        if not finite:  # compiled code does not compare such numbers
            raise Unfit
        return Pooled(output, chosen)

    def image_gradients(self, delta: Tensor, chosen: Tensor, size: torch.Size) -> Tensor:
        """The gradients of images of this size from those of the output."""
        images = _empty(size, delta.dtype)
        _native.function("pooled_image_gradients", delta.dtype)(
            delta.contiguous(memory_format=torch.channels_last),
            chosen,
            self.layer.weight,
            integers(0, *self.layer.weight.stride()),
            self._shape(images),
            *self.window,
            images,
            torch.get_num_threads(),
        )
        return images

    def add_gradients(
        self,
        images: Tensor,
        delta: Tensor,
        share: float,
        workers: int,
        weights: Tensor | None,
        biases: Tensor | None,
    ) -> None:
        """Add ``share`` times the workers' gradients to weights (h, *shape) and biases (h, ·).

        What is None is not wanted.
        """
        if weights is None:
            weights = delta.new_zeros(workers, *self.layer.weight.shape)
        _native.function("pooled_weight_gradients", delta.dtype)(
            delta.contiguous(memory_format=torch.channels_last),
            self.chosen,
            images.contiguous(memory_format=torch.channels_last),
            self._shape(images, workers),
            *self.window,
            workers,
            weights,
            integers(*weights.stride()),
            biases,
            0 if biases is None else biases.stride(0),
            share,
            torch.get_num_threads(),
        )

    def _shape(self, images: Tensor, workers: int = 1) -> Any:
        layer = self.layer
        geometry = zip(
            images.shape[2:],
            layer.kernel_size,
            layer.stride,
            map(int, layer.padding),
            layer.dilation,
            strict=True,
        )
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in geometry]
        return shape_of(layer, images.shape, (layer.out_channels, *out), workers)


class _Pass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, block: PooledConvolution) -> tuple[Tensor, Tensor]:
        output, chosen = block.run(images)
        ctx.block, ctx.chosen, ctx.size = block, chosen, images.shape
        ctx.mark_non_differentiable(chosen)
        return output, chosen

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, delta: Tensor, _: Tensor) -> tuple[Tensor | None, None]:
        if not ctx.needs_input_grad[0]:
            return None, None
        return ctx.block.image_gradients(delta, ctx.chosen, ctx.size), None


@contextmanager
def pooled_convolutions(
    model: nn.Module, images: Tensor, forward_only: bool = False
) -> Iterator[None]:
    """The model with such layers in the place of its own, where compiled code serves these images.

    They are looked for in every ``nn.Sequential``; for a pass without gradients, layers with many
    channels stay torch's. A pass may raise :class:`Unfit`.
    """
    replaced: list[tuple[nn.Sequential, dict[str, nn.Module]]] = []
    if _serves(images):
        for module in list(model.modules()):
            if type(module) is nn.Sequential:
                found = _threes(module, images.dtype)
                replaced += [(module, own) for own in found if not (forward_only and _wide(own))]
    for module, own in replaced:
        layer, _, pool = own.values()
        assert isinstance(layer, nn.Conv2d)
        assert isinstance(pool, nn.MaxPool2d)
        made = (PooledConvolution(layer, pool), nn.Identity(), nn.Identity())
        module._modules.update(zip(own, made, strict=True))
    try:
        yield
    finally:
        for module, own in replaced:
            module._modules.update(own)


def outputs(model: nn.Module, images: Tensor) -> Tensor:
    """The model's outputs for images (N, C, H, W), in the fastest way that there is for them."""
    if images.dim() == 4:
        images = images.contiguous(memory_format=torch.channels_last)
    found: Tensor
    try:
        with pooled_convolutions(model, images, forward_only=True):
            found = model(images)
    except Unfit:
        found = model(images)
    return found


def _serves(images: Tensor) -> bool:
    return (
        images.is_cpu
        and images.dim() == 4
        and images.dtype in _native.SUFFIX
        and not torch.is_autocast_enabled("cpu")
        and _native.library() is not None
    )


def _threes(layers: nn.Sequential, dtype: torch.dtype) -> Iterator[dict[str, nn.Module]]:
    """A convolution, a ReLU and a pooling that follow each other, by their names."""
    names = list(layers._modules)
    for three in zip(names, names[1:], names[2:], strict=False):
        own = {name: layers._modules[name] for name in three}
        if not any(map(_is_watched, own.values())) and _fit(*own.values(), dtype=dtype):
            yield own


def _wide(three: dict[str, nn.Module]) -> bool:
    return any(isinstance(m, nn.Conv2d) and many_channels(m) for m in three.values())


def _fit(
    layer: nn.Module,
    activation: nn.Module,
    pool: nn.Module,
    *,
    dtype: torch.dtype,
) -> bool:
    return (
        type(layer) is nn.Conv2d
        and type(activation) is nn.ReLU
        and type(pool) is nn.MaxPool2d
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
        and layer.weight.dtype == dtype
        and _pair(pool.kernel_size) == _pair(pool.stride)
        and math.prod(_pair(pool.kernel_size)) <= LARGEST_WINDOW
        and _pair(pool.padding) == (0, 0)
        and _pair(pool.dilation) == (1, 1)
        and not pool.ceil_mode
        and not pool.return_indices
    )


def _is_watched(module: nn.Module) -> bool:
    """Whether someone wants to see a layer's own input or output."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, kind) for kind in hooks)


def _empty(size: Sequence[int], dtype: torch.dtype) -> Tensor:
    return torch.empty(size, dtype=dtype, memory_format=torch.channels_last)


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])
