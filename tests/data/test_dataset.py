"""What holds for every data set, and for one of a user's own."""

from pathlib import Path

import numpy as np
import pytest

from lit_byz.data import CIFAR10, DATASETS, MNIST, Dataset, FashionMNIST, RawImages
from lit_byz.errors import BadRequest


class Own(Dataset):
    """Outside the registry; pixels and labels can be spoilt."""

    classes = 2
    shape = (1, 2, 3)

    def read(self, root: str | Path | None) -> RawImages:
        images = np.arange(24, dtype=np.uint8).reshape(4, 1, 2, 3)
        labels = np.array([0, 1, 0, 1])
        return RawImages(images, labels, images[:1], labels[:1])


class WrongShape(Own):
    shape = (3, 2, 3)


class WrongLabels(Own):
    classes = 1


class WrongType(Own):
    def read(self, root: str | Path | None) -> RawImages:
        raw = super().read(root)
        return RawImages(
            raw.train_images.astype(float), raw.train_labels, raw.test_images, raw.test_labels
        )


def test_names() -> None:
    assert list(DATASETS) == ["cifar10", "digits", "fashion_mnist", "mnist"]


@pytest.mark.parametrize("name", list(DATASETS))
def test_making_one_touches_no_disk(name: str, tmp_path: Path) -> None:
    dataset = DATASETS[name]()
    assert dataset.name == name
    assert dataset.classes == 10
    assert dataset.shape == ((3, 32, 32) if name == "cifar10" else (1, 28, 28))
    assert not (tmp_path / "data").exists()


def test_transforms_of_the_paper() -> None:
    assert FashionMNIST().random_flip
    assert CIFAR10().doubled
    flips = {name: DATASETS[name]().random_flip for name in DATASETS}
    doubled = {name: DATASETS[name]().doubled for name in DATASETS}
    assert [name for name, value in flips.items() if value] == ["fashion_mnist"]
    assert [name for name, value in doubled.items() if value] == ["cifar10"]


def test_normalisation_of_the_paper() -> None:
    """Means and deviations as the paper gives them; those of CIFAR-10 are not its pixels' own."""
    assert (MNIST.mean, MNIST.std) == ((0.1307,), (0.3081,))
    assert (FashionMNIST.mean, FashionMNIST.std) == ((0.0,), (1.0,))
    assert CIFAR10.mean == (0.4914, 0.4822, 0.4465)
    assert CIFAR10.std == (0.2023, 0.1994, 0.2010)


def test_settings_show() -> None:
    assert repr(CIFAR10(doubled=False)) == "CIFAR10(doubled=False)"


def test_an_own_class_by_its_dotted_path() -> None:
    dataset = DATASETS["tests.data.test_dataset.Own"]()
    images = dataset.load()
    x, y = images.train_batch(images.train_labels)
    assert dataset.name == "tests.data.test_dataset.Own"
    assert x.shape == (4, 1, 2, 3)
    assert y.tolist() == [0, 1, 0, 1]
    assert "4 + 1 images embedded" in str(dataset.fetch())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (WrongShape, r"train_images is uint8 of shape \(4, 1, 2, 3\); it must be .*\(N, 3, 2, 3\)"),
        (WrongLabels, r"train_labels run from 0 to 1; they must be within 0 … 0"),
        (WrongType, r"train_images is float64"),
    ],
)
def test_a_class_that_breaks_its_promise(wrong: type[Own], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        wrong().load()
