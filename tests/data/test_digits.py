import numpy as np
import torch

from lit_byz.data import Digits, Extreme


def test_counts_and_first_labels() -> None:
    images = Digits().load()
    assert (images.train_size, images.test_size) == (1440, 357)
    assert torch.bincount(images.train_labels).tolist() == [144] * 10
    assert torch.bincount(images.test_labels).min() == 30


def test_every_bundled_image_is_in_exactly_one_part() -> None:
    from sklearn.datasets import load_digits

    raw, bundled = Digits().read(None), load_digits()
    found = np.concatenate([raw.train_images, raw.test_images]).reshape(1797, -1)
    small = torch.from_numpy(bundled.images)[:, None] * (255 / 16)
    large = torch.nn.functional.interpolate(small, (28, 28), mode="bilinear").round()
    expected = large.to(torch.uint8).numpy().reshape(1797, -1)
    labels = np.concatenate([raw.train_labels, raw.test_labels])
    order, other = np.lexsort(found.T), np.lexsort(expected.T)
    np.testing.assert_array_equal(found[order], expected[other])
    np.testing.assert_array_equal(labels[order], bundled.target[other])


def test_the_split_is_always_the_same() -> None:
    first, second = Digits().read(None), Digits().read(None)
    np.testing.assert_array_equal(first.train_images, second.train_images)
    assert first.train_labels[:10].tolist() == [0, 1, 2, 4, 6, 7, 8, 9, 0, 1]


def test_normalised_to_mean_zero_and_deviation_one() -> None:
    x, _ = Digits().load().train_batch(torch.arange(1440))
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1) < 0.01


def test_ten_workers_of_the_extreme_partition_have_one_digit_each() -> None:
    labels = Digits().load().train_labels.numpy()
    parts = Extreme()(labels, workers=10, seed=1)
    assert [set(labels[part].tolist()) for part in parts] == [{digit} for digit in range(10)]
