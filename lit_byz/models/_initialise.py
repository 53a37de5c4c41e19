"""Initial parameters from a seed, scaled."""

import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from lit_byz._checks import check_integer, check_number
from lit_byz._streams import Stream, seeded_torch


def initialise(make: Callable[[], nn.Module], seed: int, scale: float = 1.0) -> nn.Module:
    """The model that ``make`` constructs when the random numbers start from ``seed``.

    ``make`` is a model's class, or a function that calls it. The model is constructed rather than
    reset, so that a user's own initialisation in a constructor counts as PyTorch's does. All
    initial parameters, those of batch norm included, are multiplied by ``scale`` (the paper's μ).
    The global random numbers are left as they were.

    >>> from lit_byz.models import LogisticRegression
    >>> once, twice = (initialise(LogisticRegression, seed=1, scale=mu) for mu in (1.0, 2.0))
    >>> bool((twice.layers[1].weight == 2 * once.layers[1].weight).all())
    True
    """
    seed = check_integer("initialise", "seed", seed, 0)
    scale = check_number("initialise", "scale", scale, 0, sys.float_info.max, above=True)
    # Only the CPU's generator: models are made on the CPU and moved afterwards.
    with seeded_torch(seed, Stream.INITIAL):
        model = make()
    if is_unsized(model):
        raise ValueError(
            f"initialise: {type(model).__name__} has layers without sizes, such as LazyLinear; "
            "give all sizes in its constructor"
        )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model


def is_unsized(model: nn.Module) -> bool:
    """Whether a model has layers that take their sizes from the first inputs, as LazyLinear."""
    return any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers()))


def parameter_count(model: nn.Module) -> int:
    """The paper's d: how many numbers are trained."""
    return sum(parameter.numel() for parameter in model.parameters())
