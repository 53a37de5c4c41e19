"""Data sets and where they come from, their division among workers, batches in memory.

>>> from lit_byz.data import DATASETS, PARTITIONS, WorkerBatches
>>> images = DATASETS["digits"]().load()
>>> parts = PARTITIONS["dirichlet"](alpha=0.5)(images.train_labels, workers=10, seed=1)
>>> x, y = WorkerBatches(images, parts, batch_size=25, seed=1).round(0)
>>> x.shape, y.shape
(torch.Size([10, 25, 1, 28, 28]), torch.Size([10, 25]))
"""

import importlib
from typing import TYPE_CHECKING

from lit_byz.data._cifar10 import CIFAR10
from lit_byz.data._dataset import DATASETS, Dataset, FetchReport
from lit_byz.data._digits import Digits
from lit_byz.data._download import DownloadedDataset, data_root
from lit_byz.data._fashion_mnist import FashionMNIST
from lit_byz.data._idx import IdxDataset
from lit_byz.data._mnist import MNIST
from lit_byz.data._partitions import (
    IID,
    PARTITIONS,
    Dirichlet,
    Extreme,
    Gamma,
    Partition,
    label_counts,
)
from lit_byz.data._raw import RawImages
from lit_byz.data._sources import (
    Addresses,
    DebianPackage,
    NpmPackage,
    Source,
    SourceFailed,
    TorchvisionMirrors,
)

if TYPE_CHECKING:
    from lit_byz.data._batches import WorkerBatches
    from lit_byz.data._deal import Deal, deal
    from lit_byz.data._images import ImageData

__all__ = [
    "CIFAR10",
    "DATASETS",
    "IID",
    "MNIST",
    "PARTITIONS",
    "Addresses",
    "Dataset",
    "Deal",
    "DebianPackage",
    "Digits",
    "Dirichlet",
    "DownloadedDataset",
    "Extreme",
    "FashionMNIST",
    "FetchReport",
    "Gamma",
    "IdxDataset",
    "ImageData",
    "NpmPackage",
    "Partition",
    "RawImages",
    "Source",
    "SourceFailed",
    "TorchvisionMirrors",
    "WorkerBatches",
    "data_root",
    "deal",
    "label_counts",
]

# Fetching data takes less time than importing torch, and does without it.
_WITH_TORCH = {
    "Deal": "lit_byz.data._deal",
    "ImageData": "lit_byz.data._images",
    "WorkerBatches": "lit_byz.data._batches",
    "deal": "lit_byz.data._deal",
}


def __getattr__(name: str) -> object:
    if name in _WITH_TORCH:
        return getattr(importlib.import_module(_WITH_TORCH[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
