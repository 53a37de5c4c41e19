"""The user's model while it is trained: layers that each worker runs in its own way.

What is changed for that (dropout layers, the momentum of batch norm, the memory layout of filters)
is changed back when training ends, whether it ends well or not.
"""

from functools import partial
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback
from torch import nn

from lit_byz.training._stochastic import BatchNorm, Undo, replace_dropout


def welcome(model: nn.Module) -> Undo:
    """Make a model ready for many workers; returns what makes it what it was."""
    undo = replace_dropout(model)
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    undo += [partial(setattr, norm, "momentum", norm.momentum) for norm in norms]
    contiguous = [p for p in model.parameters() if p.dim() == 4 and p.is_contiguous()]
    # Convolutions take images in this layout, and would bring the weights into it every time.
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def back() -> None:
        for step in undo:
            step()
        for parameter in contiguous:
            parameter.data = parameter.data.contiguous()

    return back


class Farewell(Callback):
    """Gives the model back as it came, also where training ends by an error."""

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            pl_module.give_back()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        pl_module.give_back()
