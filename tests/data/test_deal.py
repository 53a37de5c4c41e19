"""Holding images out: of every class, before the partition, and out of every worker's reach."""

import numpy as np
import pytest

from lit_byz.data import DATASETS, PARTITIONS, ImageData, RawImages, WorkerBatches, deal
from lit_byz.errors import BadRequest


def images(per_class: int = 20, classes: int = 5, *, doubled: bool = False) -> ImageData:
    labels = np.repeat(np.arange(classes), per_class).astype(np.int64)
    pixels = np.arange(len(labels), dtype=np.uint8).reshape(-1, 1, 1, 1)
    pixels = np.broadcast_to(pixels, (len(labels), 1, 2, 2)).copy()
    return ImageData(RawImages(pixels, labels, pixels[:1], labels[:1]), doubled=doubled)


@pytest.mark.parametrize("partition", ["iid", "extreme", "dirichlet", "gamma"])
@pytest.mark.parametrize("share", [0.1, 0.35])
def test_every_point_is_dealt_once(partition: str, share: float) -> None:
    found = deal(images(), PARTITIONS[partition](), 4, seed=3, validation=share)
    every = np.concatenate([*found.parts, found.held_out])
    assert sorted(every) == list(range(100))
    # The same share of every class.
    assert np.bincount(found.held_out // 20).tolist() == [round(20 * share)] * 5


def test_the_partition_deals_what_is_left() -> None:
    """Under extreme heterogeneity each of five workers keeps one class, held out or not."""
    found = deal(images(), PARTITIONS["extreme"](), 5, seed=1, validation=0.2)
    assert [set(part // 20) for part in found.parts] == [{0}, {1}, {2}, {3}, {4}]


def test_nothing_changes_where_nothing_is_held_out() -> None:
    digits = DATASETS["digits"]().load()
    for name in ("iid", "extreme", "dirichlet"):
        partition = PARTITIONS[name]()
        found = deal(digits, partition, 7, seed=2)
        expected = partition(digits.train_labels, 7, 2)
        assert all(np.array_equal(a, b) for a, b in zip(found.parts, expected, strict=True))
        assert len(found.held_out) == 0


def test_the_seed_chooses() -> None:
    iid = PARTITIONS["iid"]()
    first, again, other = (deal(images(), iid, 4, seed, 0.2).held_out for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_flipped_copy_of_an_image_is_held_out_too() -> None:
    found = deal(images(doubled=True), PARTITIONS["iid"](), 4, seed=1, validation=0.2)
    trained = np.concatenate(found.parts) % 100
    assert set(trained).isdisjoint(found.held_out % 100)
    assert len(found.held_out) == 20
    assert found.held_out.max() < 100


def test_no_worker_ever_draws_what_is_held_out() -> None:
    data = images()
    found = deal(data, PARTITIONS["dirichlet"](), 4, seed=1, validation=0.3)
    batches = WorkerBatches(data, found.parts, 10, 1, found.held_out)
    drawn = {int(index) for t in range(40) for index in batches.indices(t).reshape(-1)}
    assert drawn == set(range(100)) - set(found.held_out.tolist())
    seen = [y for _, y in batches.held_out_batches(7)]
    assert [len(y) for y in seen] == [7, 7, 7, 7, 2]
    assert sorted(int(v) for y in seen for v in y) == sorted(found.held_out // 20)


def test_a_share_that_holds_out_nothing_is_refused() -> None:
    with pytest.raises(BadRequest, match="holds out none of 100 images"):
        deal(images(), PARTITIONS["iid"](), 4, seed=1, validation=0.001)
    with pytest.raises(ValueError, match=r"validation must be a number in \[0, 0\.9\]"):
        deal(images(), PARTITIONS["iid"](), 4, seed=1, validation=1.0)


def test_one_image_of_every_class_is_left_for_training() -> None:
    found = deal(images(per_class=2), PARTITIONS["iid"](), 2, seed=1, validation=0.9)
    assert set(np.concatenate(found.parts) // 2) == {0, 1, 2, 3, 4}
