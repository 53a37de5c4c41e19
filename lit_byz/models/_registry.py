"""The registry of models and the argument checks that they share."""

from collections.abc import Sequence

from lit_byz._checks import check_integer
from lit_byz.registry import Registry

MODELS = Registry("model", "torch.nn.Module")


def check_images(
    owner: str, shape: Sequence[int], classes: int, smallest: int = 1
) -> tuple[int, int, int]:
    """``shape`` as (channels, height, width), or an error; ``smallest`` bounds height and width."""
    if len(shape) != 3:
        raise ValueError(f"{owner}: shape must be (channels, height, width), got {tuple(shape)}")
    channels, height, width = shape
    check_integer(owner, "shape's channels", channels, 1)
    check_integer(owner, "shape's height", height, smallest)
    check_integer(owner, "shape's width", width, smallest)
    check_integer(owner, "classes", classes, 2)
    return channels, height, width
