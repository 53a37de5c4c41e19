"""A data set of a few small images, with a source that can be held up; for processes too."""

import hashlib
import os
import struct
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from lit_byz.data import IdxDataset, Source, SourceFailed

CLASSES = 3
TRAIN, TEST = 30, 12


def _idx(array: np.ndarray) -> bytes:
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes()


def _contents() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    return {
        "train-images-idx3-ubyte": _idx(rng.integers(0, 256, (TRAIN, 4, 4))),
        "train-labels-idx1-ubyte": _idx(np.arange(TRAIN) % CLASSES),
        "t10k-images-idx3-ubyte": _idx(rng.integers(0, 256, (TEST, 4, 4))),
        "t10k-labels-idx1-ubyte": _idx(np.arange(TEST) % CLASSES),
    }


CONTENTS = _contents()


class Shelf(Source):
    """Delivers the files, unless ``TINY_CLOSED``.

    With ``TINY_GATE`` it notes each download in that folder's ``log``, and stops half-way until
    there is a file ``open``.
    """

    def __str__(self) -> str:
        return "the shelf"

    def download(self, folder: Path, advance: object) -> None:
        if os.environ.get("TINY_CLOSED"):
            raise SourceFailed("it is closed")
        for number, (file, content) in enumerate(CONTENTS.items()):
            (folder / file).write_bytes(content)
            if number == 1 and "TINY_GATE" in os.environ:
                gate = Path(os.environ["TINY_GATE"])
                with (gate / "log").open("a") as log:
                    log.write("download\n")
                while not (gate / "open").exists():
                    time.sleep(0.02)


class Tiny(IdxDataset):
    classes = CLASSES
    shape = (1, 4, 4)
    files: ClassVar = {
        file: hashlib.sha256(content).hexdigest() for file, content in CONTENTS.items()
    }
    sources = (Shelf(),)


def place_by_hand(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in CONTENTS.items():
        (folder / file).write_bytes(content)
