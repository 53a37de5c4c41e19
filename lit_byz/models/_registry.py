"""The registry of models and the argument checks that they share."""

import math
from collections.abc import Sequence

from lit_byz._checks import check_integer
from lit_byz.registry import Registry

MODELS = Registry(
    "model",
    "torch.nn.Module",
    "import math; from torch import nn\n"
    "class MyModel(nn.Sequential):\n"
    "    def __init__(self, shape, classes): super().__init__(nn.Flatten(), "
    "nn.Linear(math.prod(shape), classes))",
)


def check_images(
    owner: str, shape: Sequence[int], classes: int, smallest: int = 1
) -> tuple[int, int, int]:
    """``shape`` as (channels, height, width), or an error; ``smallest`` bounds height and width."""
    if len(shape) != 3:
        raise ValueError(
            f"{owner}: shape must be (channels, height, width), got {tuple(shape)}; logreg and mlp "
            "take inputs of any shape"
        )
    channels, height, width = shape
    check_integer(owner, "shape's channels", channels, 1)
    check_integer(owner, "shape's height", height, smallest)
    check_integer(owner, "shape's width", width, smallest)
    check_integer(owner, "classes", classes, 2)
    return channels, height, width


def check_inputs(owner: str, shape: Sequence[int], classes: int) -> int:
    """How many numbers an input of any ``shape`` has, or an error."""
    if not len(shape):
        raise ValueError(f"{owner}: shape must have at least one dimension, got {tuple(shape)}")
    for size in shape:
        check_integer(owner, "each dimension of shape", size, 1)
    check_integer(owner, "classes", classes, 2)
    return math.prod(shape)
