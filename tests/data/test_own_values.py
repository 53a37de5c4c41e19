"""Values of a user's own data set that nothing can be computed with, each refused in one line."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lit_byz.data import Dataset
from lit_byz.errors import BadRequest


class Points(Dataset):
    """Four points of two features."""

    classes, shape = 2, (2,)

    def __init__(self, x: Any = None, y: Any = None) -> None:
        self.x = np.arange(8.0).reshape(4, 2) if x is None else x
        self.y = np.array([0, 1, 0, 1]) if y is None else y

    def read(self, root: str | Path | None) -> tuple[Any, ...]:
        return self.x, self.y, self.x, self.y


class NoRoot(Points):
    def read(self) -> tuple[Any, ...]:  # type: ignore[override]
        return super().read(None)


class Confused(Points):
    def read(self, root: str | Path | None) -> tuple[Any, ...]:
        raise TypeError("something else")


def refused(dataset: Dataset) -> str:
    with pytest.raises(BadRequest) as caught:
        dataset.load()
    assert "\n" not in str(caught.value)
    return str(caught.value).partition(": ")[2]


def test_numbers_beyond_32_bits() -> None:
    x = np.ones((4, 2))
    x[1] = 1e39, -1e300
    assert refused(Points(x)) == (
        "train_images has 2 values beyond ±3.4e+38, the largest of 32 bits, with which models "
        "compute"
    )
    x[2, 0] = np.nan
    assert refused(Points(x)) == "train_images has 1 values that are not finite"
    x[:] = np.finfo(np.float32).max
    assert Points(x).load().train_size == 4


def test_masked_entries() -> None:
    x = np.ma.masked_greater(np.arange(8.0).reshape(4, 2), 5)
    y = np.ma.masked_equal(np.array([0, 1, 0, 1]), 1)
    assert refused(Points(x)) == "train_images has 2 masked entries; fill them"
    assert refused(Points(y=y)) == "train_labels has 2 masked entries; fill them"
    assert Points(x.filled(0), np.ma.asarray([0, 1, 0, 1])).load().train_size == 4


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("std", (0.0,), "must be finite and greater than 0"),
        ("std", 0, "must be finite and greater than 0"),
        ("std", (1.0, -1.0), "must be finite and greater than 0"),
        ("std", float("inf"), "must be finite and greater than 0"),
        ("mean", (float("nan"),), "must be finite"),
        ("mean", (0.0, float("inf")), "must be finite"),
        ("mean", "0.5", "must be a number, or a list of numbers"),
        ("std", None, "must be a number, or a list of numbers"),
        ("mean", ((1.0, 2.0),), "must be a number, or a list of numbers"),
        ("mean", ((1.0, 2.0), 3.0), "must be a number, or a list of numbers"),
    ],
)
def test_normalisation_that_is_none(key: str, value: Any, message: str) -> None:
    own = type("Own", (Points,), {key: value})
    assert refused(own()) == f"{key} = {value!r}: {message}"


def test_three_means_of_two_features() -> None:
    own = type("Own", (Points,), {"mean": (1.0, 2.0, 3.0)})
    assert refused(own()).startswith("mean has 3 values; it must have one, or one for each of 2")


@pytest.mark.parametrize("kind", [float, lambda v: (v,), lambda v: [v, v], np.float32, np.array])
def test_one_number_for_all(kind: Any) -> None:
    own = type("Own", (Points,), {"mean": kind(0.5), "std": kind(0.25)})
    x, _ = own().load().train_batch(torch.tensor([1]))
    assert x.tolist() == [[(2 - 0.5) / 0.25, (3 - 0.5) / 0.25]]


def test_read_without_root() -> None:
    assert refused(NoRoot()).startswith("read must take the arguments (self, root), got (self)")
    with pytest.raises(TypeError, match=re.escape("something else")):
        Confused().load()
