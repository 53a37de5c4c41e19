"""The digits that come with scikit-learn: small, embedded, for tests and quick runs."""

import gzip
import hashlib
import importlib.util
from pathlib import Path

import numpy as np

from lit_byz._streams import Stream, numpy_generator
from lit_byz.data._dataset import DATASETS, Dataset
from lit_byz.data._raw import RawImages
from lit_byz.errors import RunFailed

CONTENT = "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"  # SHA-256
PER_CLASS = 144


@DATASETS.register("digits")
class Digits(Dataset):
    """1797 handwritten digits of the UCI collection, 8 × 8 with 17 shades of grey.

    They are brought to bytes and to 28 × 28 by bilinear interpolation, so that the models for
    MNIST take them. The training set has exactly 144 images of each class, 1440 in all, so that
    the ``extreme`` partition among ten workers gives each of them one digit; the other 357 are
    the test set. Which is which is drawn once and for all, not from the seed of a run.
    """

    classes = 10
    shape = (1, 28, 28)
    mean = (0.305,)
    std = (0.324,)

    def read(self, root: str | Path | None) -> RawImages:
        table = _bundled_table()
        images, labels = _enlarge(table[:, :64].reshape(-1, 8, 8)), table[:, 64].astype(np.int64)
        rng = numpy_generator(0, Stream.DIGITS)
        chosen = [
            rng.choice(np.flatnonzero(labels == digit), PER_CLASS, replace=False)
            for digit in range(self.classes)
        ]
        train = np.zeros(len(labels), bool)
        train[np.concatenate(chosen)] = True
        return RawImages(images[train], labels[train], images[~train], labels[~train])


def _bundled_table() -> np.ndarray:
    """Rows of 64 shades and a label. Read from scikit-learn's file, because importing
    scikit-learn itself takes longer than a quick run."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise RunFailed("data set 'digits' is part of scikit-learn, which is not installed")
    path = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise RunFailed(f"data set 'digits': {path} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != CONTENT:
        raise RunFailed(f"data set 'digits': {path} has the wrong content")
    return np.loadtxt(content.decode().splitlines(), delimiter=",")


def _enlarge(shades: np.ndarray) -> np.ndarray:
    """(N, 8, 8) shades 0 … 16 to (N, 1, 28, 28) bytes."""
    import torch

    small = torch.from_numpy(shades * (255 / 16)).unsqueeze(1)
    large = torch.nn.functional.interpolate(small, (28, 28), mode="bilinear", align_corners=False)
    return large.round().to(torch.uint8).numpy()
