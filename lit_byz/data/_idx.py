"""Data sets in the idx format of MNIST."""

import gzip
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lit_byz.data._download import DownloadedDataset
from lit_byz.data._raw import RawImages
from lit_byz.data._sources import SourceFailed

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"
TEST_IMAGES = "t10k-images-idx3-ubyte"
TEST_LABELS = "t10k-labels-idx1-ubyte"

UNSIGNED_BYTE = 0x08


class IdxDataset(DownloadedDataset):
    """Four idx files by MNIST's names, packed with gzip or not."""

    by_hand = f"{TRAIN_IMAGES}, {TRAIN_LABELS}, {TEST_IMAGES}, {TEST_LABELS} (each plain or .gz)"

    def find(self, folder: Path, file: str) -> bytes | None:
        for path in sorted(folder.rglob(file)):
            return path.read_bytes()
        for path in sorted(folder.rglob(file + ".gz")):
            try:
                return gzip.decompress(path.read_bytes())
            except (OSError, EOFError, zlib.error) as error:
                raise SourceFailed(f"{path.name} cannot be unpacked: {error}") from error
        return None

    def decode(self, contents: Mapping[str, bytes]) -> RawImages:
        return RawImages(
            train_images=parse_idx(contents[TRAIN_IMAGES])[:, None],
            train_labels=parse_idx(contents[TRAIN_LABELS]).astype(np.int64),
            test_images=parse_idx(contents[TEST_IMAGES])[:, None],
            test_labels=parse_idx(contents[TEST_LABELS]).astype(np.int64),
        )


def parse_idx(content: bytes) -> np.ndarray:
    """The array in an idx file of bytes.

    >>> parse_idx(bytes([0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 9])).tolist()
    [[7, 9]]
    """
    zeros, kind, dimensions = struct.unpack_from(">HBB", content)
    if zeros != 0 or kind != UNSIGNED_BYTE:
        raise ValueError(f"not an idx file of bytes: it starts with {content[:4].hex()}")
    shape = struct.unpack_from(f">{dimensions}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
