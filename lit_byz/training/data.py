"""The honest workers' data as a LightningDataModule."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import lightning
import torch
from torch import Tensor

from lit_byz.data import DATASETS, PARTITIONS, Dataset, Partition, WorkerBatches, deal

# The names of what the loaders of validation hold, in their order.
JUDGED_ON = ("test", "val")


class Round(NamedTuple):
    """What all honest workers draw in one round: images (h, b, …) and labels (h, b)."""

    number: int
    images: Tensor
    labels: Tensor


class Rounds:
    """The rounds of an epoch, which is as long as the workers together need to see all points.

    A round depends on its number alone, so that a run that is taken up again goes on with the
    round that it would have come to: the iterator begins where ``begin()`` says.
    """

    def __init__(self, batches: WorkerBatches, begin: Callable[[], int]) -> None:
        self.batches = batches
        self._begin = begin
        points = sum(len(part) for part in batches.parts)
        self._length = max(1, math.ceil(points / (batches.workers * batches.batch_size)))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Round]:
        begin = self._begin()
        for number in range(begin, begin - begin % self._length + self._length):
            yield Round(number, *self.batches.round(number))


class TestImages:
    """The test images and their labels, so many at once."""

    __test__ = False  # pytest takes it for a test otherwise

    def __init__(self, batches: WorkerBatches, size: int) -> None:
        self.batches = batches
        self.size = size

    def __len__(self) -> int:
        return math.ceil(self.batches.images.test_size / self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from self.batches.images.test_batches(self.size)


class HeldOutImages(TestImages):
    """The training images that no worker sees, and their labels."""

    def __len__(self) -> int:
        return math.ceil(len(self.batches.held_out) / self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from self.batches.held_out_batches(self.size)


class WorkerData(lightning.LightningDataModule):
    """Training data dealt among honest workers, and test images.

    ``dataset`` and ``partition`` are names or objects. The data set is fetched if need be. Batches
    of training are :class:`Round` s, those of validation and test are images and labels. With
    ``validation`` that share of every class is held out before the rest is dealt; the images are a
    second loader of validation's, after the test images.

    >>> data = WorkerData("digits", "extreme", workers=10, batch_size=8, seed=1)
    >>> data.setup("fit")
    >>> next(iter(data.train_dataloader())).images.shape
    torch.Size([10, 8, 1, 28, 28])
    """

    def __init__(
        self,
        dataset: str | Dataset,
        partition: str | Partition = "extreme",
        workers: int = 10,
        batch_size: int = 25,
        seed: int = 0,
        root: str | None = None,
        test_batch_size: int = 250,
        validation: float = 0.0,
    ) -> None:
        super().__init__()
        self._dataset = DATASETS[dataset]() if isinstance(dataset, str) else dataset
        self._partition = PARTITIONS[partition]() if isinstance(partition, str) else partition
        self._classes: int | None = getattr(self._dataset, "classes", None)
        self._shape = (workers, batch_size, seed)
        self._root = root
        self._validation = validation
        self.test_batch_size = test_batch_size
        self._batches: WorkerBatches | None = None

    @classmethod
    def of(cls, batches: WorkerBatches, test_batch_size: int = 250) -> "WorkerData":
        """The data module of batches that there are already."""
        made = cls.__new__(cls)
        lightning.LightningDataModule.__init__(made)
        made.test_batch_size = test_batch_size
        made._classes = None
        made._shape = (batches.workers, batches.batch_size, batches.seed)
        made._batches = batches
        return made

    def prepare_data(self) -> None:
        if self._batches is None:
            self._dataset.load(self._root)

    def setup(self, stage: str) -> None:
        _ = self.batches

    @property
    def batches(self) -> WorkerBatches:
        """The workers' batches; the data are read when they are first asked for."""
        if self._batches is None:
            workers, batch_size, seed = self._shape
            images = self._dataset.load(self._root)
            dealt = deal(images, self._partition, workers, seed, self._validation)
            self._batches = WorkerBatches(images, dealt.parts, batch_size, seed, dealt.held_out)
        return self._batches

    @property
    def workers(self) -> int:
        """The number of honest workers; no data are read for it."""
        return self._shape[0]

    @property
    def classes(self) -> int:
        """As many as the data set says; of batches alone, as their training labels show."""
        if self._classes is None:
            return int(self.batches.images.train_labels.max()) + 1
        return int(self._classes)

    def train_dataloader(self) -> Rounds:
        return Rounds(self.batches, self._global_step)

    def val_dataloader(self) -> list[TestImages]:
        found = [self.test_dataloader()]
        if len(self.batches.held_out):
            found.append(HeldOutImages(self.batches, self.test_batch_size))
        return found

    def test_dataloader(self) -> TestImages:
        return TestImages(self.batches, self.test_batch_size)

    def predict_dataloader(self) -> TestImages:
        return self.test_dataloader()

    def _global_step(self) -> int:
        return 0 if self.trainer is None else int(self.trainer.global_step)

    def transfer_batch_to_device(
        self, batch: object, device: torch.device, dataloader_idx: int
    ) -> object:
        """Nothing: the images are where the model is since training began."""
        return batch
