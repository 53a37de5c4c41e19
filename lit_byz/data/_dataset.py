"""What a data set is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from lit_byz.data._raw import RawImages
from lit_byz.registry import Registry

if TYPE_CHECKING:
    from lit_byz.data._images import ImageData

DATASETS = Registry(
    "data set",
    "lit_byz.data.Dataset",
    "from lit_byz.data import Dataset, RawImages\n"
    "class MyData(Dataset):\n"
    "    classes, shape, read = 2, (1, 4, 4), lambda self, root: RawImages(x, y, x_test, y_test)",
)


@dataclass(frozen=True)
class FetchReport:
    """What :meth:`Dataset.fetch` found or did; ``str(report)`` is a line for a person."""

    name: str
    train_size: int
    test_size: int
    state: str

    def __str__(self) -> str:
        return f"{self.name}: {self.train_size} + {self.test_size} images {self.state}"


class Dataset(ABC):
    """Labelled images, divided into training and test set.

    A data set is a subclass that says what its images are, in class attributes, and gives them
    in :meth:`read`. Registered by name, or named by its dotted path, it works everywhere:

    >>> import numpy as np
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

    Data sets that are downloaded derive from :class:`~lit_byz.data.DownloadedDataset` instead.
    The transforms of the training set are class attributes too; a subclass that makes them
    settings takes them as arguments of its constructor.
    """

    classes: ClassVar[int]
    shape: ClassVar[tuple[int, int, int]]
    mean: ClassVar[tuple[float, ...]] = (0.0,)  # per channel, or one for all
    std: ClassVar[tuple[float, ...]] = (1.0,)
    random_flip: bool = False  # flip training images horizontally, each with probability 1/2
    doubled: bool = False  # add the horizontally flipped images to the training set

    @property
    def name(self) -> str:
        """The registered name, or the dotted path."""
        return DATASETS.name_of(type(self))

    @abstractmethod
    def read(self, root: str | Path | None) -> RawImages:
        """The images as bytes. ``root`` is the folder for data, None for the default one."""

    def load(self, root: str | Path | None = None) -> "ImageData":
        """The data set in memory, fetched first if need be."""
        from lit_byz.data._images import ImageData

        raw = self.read(root)
        raw.check(self.name, self.shape, self.classes)
        return ImageData(
            raw,
            mean=self.mean,
            std=self.std,
            random_flip=self.random_flip,
            doubled=self.doubled,
        )

    def fetch(self, root: str | Path | None = None) -> FetchReport:
        """Make sure that the data is there and sound."""
        raw = self.read(root)
        raw.check(self.name, self.shape, self.classes)
        return FetchReport(
            self.name, len(raw.train_labels), len(raw.test_labels), "embedded, nothing to fetch"
        )

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"
