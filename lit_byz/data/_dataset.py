"""What a data set is."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lit_byz.data._raw import RawImages
from lit_byz.errors import BadRequest
from lit_byz.registry import Registry, shown_how

if TYPE_CHECKING:
    from lit_byz.data._images import ImageData

DATASETS = Registry(
    "data set",
    "lit_byz.data.Dataset",
    "from lit_byz.data import Dataset\n"
    "class MyData(Dataset):\n"
    "    classes, shape, read = 3, (13,), lambda self, root: (x, y, x_test, y_test)",
)


@dataclass(frozen=True)
class FetchReport:
    """What :meth:`Dataset.fetch` found or did; ``str(report)`` is a line for a person."""

    name: str
    train_size: int
    test_size: int
    state: str
    what: str = "images"

    def __str__(self) -> str:
        return f"{self.name}: {self.train_size} + {self.test_size} {self.what} {self.state}"


class Dataset(ABC):
    """Labelled images, or other inputs, divided into training and test set.

    A data set is a subclass that says what its inputs are, in class attributes, and gives them
    in :meth:`read`. Registered by name, or named by its dotted path, it works everywhere:

    >>> import numpy as np
    >>> import torch
    >>> class Stripes(Dataset):
    ...     classes = 2
    ...     shape = (1, 4, 4)
    ...
    ...     def read(self, root):
    ...         labels = np.arange(6) % 2
    ...         images = np.zeros((6, 1, 4, 4), np.uint8)
    ...         images[labels == 1, :, ::2] = 255
    ...         return RawImages(images, labels, images, labels)
    >>> Stripes().load().train_size
    6

    What is no image comes as floating-point numbers of any shape, such as features (d,) or
    sequences (T, d), which ``logreg``, ``mlp`` and models of one's own take:

    >>> class Points(Dataset):
    ...     classes = 2
    ...     shape = (3,)
    ...
    ...     def read(self, root):
    ...         features, labels = np.eye(3), np.array([0, 1, 1])
    ...         return features, labels, features, labels
    >>> Points().load().train_batch(torch.tensor([2]))[0]
    tensor([[0., 0., 1.]])

    Data sets that are downloaded derive from :class:`~lit_byz.data.DownloadedDataset` instead.
    The transforms of the training set are class attributes too; a subclass that makes them
    settings takes them as arguments of its constructor.
    """

    to_write: ClassVar[tuple[str, ...]] = ("read", "load")
    example: ClassVar[str] = DATASETS.example
    classes: ClassVar[int]
    shape: ClassVar[tuple[int, ...]]
    mean: ClassVar[float | Sequence[float]] = (0.0,)  # per channel or feature, or one for all
    std: ClassVar[float | Sequence[float]] = (1.0,)
    random_flip: bool = False  # flip training images horizontally, each with probability 1/2
    doubled: bool = False  # add the horizontally flipped images to the training set

    @property
    def name(self) -> str:
        """The registered name, or the dotted path."""
        return DATASETS.name_of(type(self))

    @abstractmethod
    def read(self, root: str | Path | None) -> RawImages | Sequence[Any]:
        """The images as bytes, or other inputs as floating-point numbers, and their labels.

        As ``RawImages``, or as four arrays: training inputs (N, …) and labels (N,), test inputs
        and labels. ``root`` is the folder for data, None for the default one.
        """

    def _checked(self, root: str | Path | None) -> RawImages:
        found = _read(self, root)
        with shown_how(type(self)):
            raw = RawImages.of(self.name, found)
        raw.check(self.name, self.shape, self.classes)
        if (self.random_flip or self.doubled) and len(self.shape) != 3:
            raise BadRequest(
                f"data set '{self.name}': random_flip and doubled are for images of shape "
                f"(channels, height, width), and its shape is {tuple(self.shape)}"
            )
        for key in ("mean", "std"):
            _numbers(self, key)
        return raw

    def load(self, root: str | Path | None = None) -> "ImageData":
        """The data set in memory, fetched first if need be."""
        from lit_byz.data._images import ImageData

        return ImageData(
            self._checked(root),
            mean=_numbers(self, "mean"),
            std=_numbers(self, "std"),
            random_flip=self.random_flip,
            doubled=self.doubled,
        )

    def digest(self, root: str | Path | None = None) -> str:
        """A text that is another one when the data is: a hash of all that :meth:`read` gives.

        It is a part of the identity of runs on a user's own data set. One that takes long to read
        may write this method, and name a version.
        """
        return self._checked(root).digest()

    def fetch(self, root: str | Path | None = None) -> FetchReport:
        """Make sure that the data is there and sound."""
        raw = self._checked(root)
        sizes = len(raw.train_labels), len(raw.test_labels)
        what = "images" if len(self.shape) == 3 else "examples"
        return FetchReport(self.name, *sizes, "embedded, nothing to fetch", what)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


def _read(dataset: Dataset, root: str | Path | None) -> Any:
    """What ``dataset.read`` returns, if it can be called as it should."""
    try:
        return dataset.read(root)
    except TypeError:
        try:
            inspect.signature(dataset.read).bind(root)
        except TypeError:
            takes = inspect.signature(type(dataset).read)
            must = "read must take the arguments (self, root)"
            raise BadRequest(f"data set '{dataset.name}': {must}, got {takes}") from None
        raise


def _numbers(dataset: Dataset, key: str) -> tuple[float, ...]:
    """``mean`` or ``std``: one number for all channels or features, or one for each."""
    given, what = getattr(dataset, key), f"data set '{dataset.name}': {key}"
    try:
        found = np.atleast_1d(np.asarray(given))
    except (TypeError, ValueError, RuntimeError):  # ragged, or not on the CPU
        found = np.empty(0, object)
    if found.dtype.kind not in "fiu" or found.ndim != 1:
        raise BadRequest(f"{what} = {given!r}: must be a number, or a list of numbers")
    if len(found) not in (1, *dataset.shape[:1]):
        raise BadRequest(
            f"{what} has {len(found)} values; it must have one, or one for each of "
            f"{dataset.shape[0]} channels or features"
        )
    if not np.isfinite(found).all() or (key == "std" and (found <= 0).any()):
        above = " and greater than 0" if key == "std" else ""
        raise BadRequest(f"{what} = {given!r}: must be finite{above}")
    return tuple(map(float, found))
