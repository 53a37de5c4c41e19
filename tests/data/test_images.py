import numpy as np
import pytest
import torch

from lit_byz.data import ImageData, RawImages

MEAN, STD = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)


@pytest.fixture
def raw() -> RawImages:
    rng = np.random.default_rng(1)
    return RawImages(
        train_images=rng.integers(0, 256, (9, 3, 5, 4), np.uint8),
        train_labels=rng.integers(0, 10, 9),
        test_images=rng.integers(0, 256, (7, 3, 5, 4), np.uint8),
        test_labels=rng.integers(0, 10, 7),
    )


def reference(pixels: np.ndarray) -> torch.Tensor:
    mean, std = (np.array(values).reshape(3, 1, 1) for values in (MEAN, STD))
    return torch.from_numpy(((pixels / 255 - mean) / std).astype(np.float32))


def test_a_batch_of_any_shape(raw: RawImages) -> None:
    images = ImageData(raw, mean=MEAN, std=STD)
    indices = torch.tensor([[8, 0, 3], [3, 1, 2]])
    x, y = images.train_batch(indices)
    torch.testing.assert_close(x, reference(raw.train_images[indices]))
    assert x.dtype == torch.float32
    assert y.tolist() == raw.train_labels[indices].tolist()


def test_without_normalisation_pixels_are_in_unit_interval(raw: RawImages) -> None:
    x, _ = ImageData(raw).train_batch(torch.arange(9))
    torch.testing.assert_close(x, torch.from_numpy(raw.train_images).float() / 255)


def test_flips_are_horizontal_and_only_where_asked(raw: RawImages) -> None:
    images = ImageData(raw, mean=MEAN, std=STD, random_flip=True)
    flips = torch.tensor([True, False, True])
    x, _ = images.train_batch(torch.tensor([4, 4, 5]), flips)
    plain = reference(raw.train_images)
    torch.testing.assert_close(x, torch.stack([plain[4].flip(-1), plain[4], plain[5].flip(-1)]))


def test_doubled_training_set_ends_with_its_mirror_image(raw: RawImages) -> None:
    images = ImageData(raw, mean=MEAN, std=STD, doubled=True)
    assert images.train_size == 18
    x, y = images.train_batch(torch.arange(18))
    torch.testing.assert_close(x[9:], x[:9].flip(-1))
    torch.testing.assert_close(x[:9], reference(raw.train_images))
    assert torch.equal(y, images.train_labels)
    assert torch.equal(y[9:], y[:9])
    twice, _ = images.train_batch(torch.tensor([9]), torch.tensor([True]))
    torch.testing.assert_close(twice[0], x[0])


def test_test_images_are_never_augmented(raw: RawImages) -> None:
    images = ImageData(raw, mean=MEAN, std=STD, random_flip=True, doubled=True)
    batches = list(images.test_batches(3))
    assert [len(y) for _, y in batches] == [3, 3, 1]
    assert images.test_size == 7
    torch.testing.assert_close(torch.cat([x for x, _ in batches]), reference(raw.test_images))
    assert torch.cat([y for _, y in batches]).tolist() == raw.test_labels.tolist()


def test_batches_do_not_change_the_images(raw: RawImages) -> None:
    before = raw.train_images.copy()
    images = ImageData(raw, doubled=True)
    x, _ = images.train_batch(torch.arange(18))
    x.zero_()
    next(images.test_batches())[0].zero_()
    np.testing.assert_array_equal(raw.train_images, before)


def test_moving_keeps_everything(raw: RawImages) -> None:
    images = ImageData(raw, mean=MEAN, std=STD).to("meta")
    x, y = images.train_batch(torch.arange(4))
    assert x.device.type == y.device.type == "meta"
