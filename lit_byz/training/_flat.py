"""A model's parameters as one vector."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn


class FlatParameters:
    """Where each parameter of a model lies in a vector of all of them, in the model's order.

    The values of a parameter are in the order that they have in memory: autograd and the optimiser
    then work on equal layouts. No rule minds in which order coordinates are.
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.size = sum(p.numel() for p in self.parameters)
        self._channels_last = [
            p.is_contiguous(memory_format=torch.channels_last) if p.dim() == 4 else False
            for p in self.parameters
        ]
        place = {id(p): i for i, p in enumerate(self.parameters)}
        # A parameter may belong to several modules, and so have several names.
        self._places = {
            f"{prefix}.{key}".lstrip("."): place[id(p)]
            for prefix, module in model.named_modules()
            for key, p in module._parameters.items()
            if id(p) in place
        }

    def named(self, values: Sequence[Tensor]) -> dict[str, Tensor]:
        """``values``, one for each parameter, under all names of these."""
        return {name: values[place] for name, place in self._places.items()}

    def views(self, rows: Tensor) -> Iterator[Tensor]:
        """``rows`` (..., d) seen as the parameters: (..., *shape) each, sharing memory."""
        start = 0
        for parameter, channels_last in zip(self.parameters, self._channels_last, strict=True):
            end = start + parameter.numel()
            part = rows[..., start:end]
            if channels_last:
                outputs, inputs, *kernel = parameter.shape
                yield part.unflatten(-1, (outputs, *kernel, inputs)).movedim(-1, -3)
            else:
                yield part.unflatten(-1, parameter.shape or (1,))
            start = end

    def gather(self) -> Tensor:
        """A copy of the parameters as one vector."""
        vector = self.parameters[0].new_empty(self.size)
        for parameter, view in zip(self.parameters, self.views(vector), strict=True):
            view.copy_(parameter.detach().reshape(view.shape))
        return vector

    def attach(self, vector: Tensor) -> None:
        """Make slices of ``vector`` (d,) the parameters' gradients, without copying."""
        for parameter, view in zip(self.parameters, self.views(vector), strict=True):
            parameter.grad = view.view(parameter.shape)
