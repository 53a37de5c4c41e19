"""The downloaded data sets against what is known of them."""

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lit_byz.data import CIFAR10, DATASETS, data_root

pytestmark = pytest.mark.data

# Name: sizes, first training and test labels, mean and deviation of the training pixels.
KNOWN = {
    "mnist": (60_000, [5, 0, 4, 1, 9, 2, 1, 3, 1, 4], [7, 2, 1, 0, 4], [0.1307], [0.3081]),
    "fashion_mnist": (60_000, [9, 0, 0, 3, 0, 2, 7, 2, 5, 5], [9, 2, 1, 1, 6], [0.2860], [0.3530]),
    "cifar10": (
        50_000,
        [6, 9, 9, 4, 1, 1, 2, 7, 8, 3],
        [3, 8, 8, 0, 6],
        [0.4914, 0.4822, 0.4465],
        [0.2470, 0.2435, 0.2616],
    ),
}


@pytest.fixture(scope="module", params=list(KNOWN))
def name(request: pytest.FixtureRequest) -> str:
    found = str(request.param)
    DATASETS[found]().fetch()
    return found


def test_counts_labels_and_moments(name: str) -> None:
    size, train, test, mean, std = KNOWN[name]
    raw = DATASETS[name]().read(None)
    assert (len(raw.train_images), len(raw.test_images)) == (size, 10_000)
    assert raw.train_labels[: len(train)].tolist() == train
    assert raw.test_labels[: len(test)].tolist() == test
    assert np.bincount(raw.test_labels).sum() == 10_000
    pixels = raw.train_images.astype(np.float32) / 255
    assert pixels.mean(axis=(0, 2, 3), dtype=np.float64) == pytest.approx(mean, abs=5e-5)
    assert pixels.std(axis=(0, 2, 3), dtype=np.float64) == pytest.approx(std, abs=5e-5)


def test_class_sizes(name: str) -> None:
    counts = np.bincount(DATASETS[name]().read(None).train_labels).tolist()
    mnist = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    expected = {"mnist": mnist, "fashion_mnist": [6000] * 10, "cifar10": [5000] * 10}
    assert counts == expected[name]


def test_a_first_pixel_of_cifar10() -> None:
    assert CIFAR10().read(None).train_images[0, :, 0, 0].tolist() == [59, 62, 63]


def test_cifar10_is_doubled() -> None:
    images = CIFAR10().load()
    assert images.train_size == 100_000
    x, y = images.train_batch(torch.tensor([[7], [50_007]]))
    torch.testing.assert_close(x[0].flip(-1), x[1])
    assert y[0] == y[1] == 7
    assert CIFAR10(doubled=False).load().train_size == 50_000


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bytes of which files are hashed from now on."""
    found: Counter[str] = Counter()
    digest = hashlib.file_digest

    def noting(file: Any, kind: str) -> Any:
        made = digest(file, kind)
        found[Path(file.name).name] += file.tell()
        return made

    monkeypatch.setattr(hashlib, "file_digest", noting)
    return found


def test_a_second_start_is_quick(name: str, hashed: Counter[str]) -> None:
    """Nothing is hashed, nothing decoded."""
    times = []
    for _ in range(3):  # others share caches and memory
        start = time.process_time()
        DATASETS[name]().load()
        times.append(time.process_time() - start)
    assert min(times) < {"cifar10": 5.0}.get(name, 1.5)
    assert not hashed


def test_fetch_looks_at_every_byte(name: str, hashed: Counter[str]) -> None:
    assert "are there and verified" in str(DATASETS[name]().fetch())
    files = (data_root() / name).glob("*.npy")
    assert hashed == {path.name: path.stat().st_size for path in files}
    assert len(hashed) == 4
