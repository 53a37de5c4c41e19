"""Batches are a function of (seed, worker, round)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.data import Digits, Extreme, ImageData, RawImages, WorkerBatches
from lit_byz.errors import BadRequest


def numbered(points: int, *, random_flip: bool = False) -> ImageData:
    """Images that show their own index in the left pixel; the right one is black."""
    images = np.zeros((points, 1, 1, 2), np.uint8)
    images[:, 0, 0, 0] = np.arange(1, points + 1)
    labels = np.arange(points)
    return ImageData(RawImages(images, labels, images, labels), random_flip=random_flip)


def cut(sizes: list[int]) -> list[np.ndarray]:
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


part_sizes = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@given(sizes=part_sizes, batch=st.integers(1, 30), seed=st.integers(0, 99), data=st.data())
def test_any_round_in_any_order(sizes: list[int], batch: int, seed: int, data: object) -> None:
    assert isinstance(data, st.DataObject)
    images = numbered(sum(sizes))
    in_order = WorkerBatches(images, cut(sizes), batch, seed)
    rounds = [in_order.indices(t) for t in range(12)]
    asked = data.draw(st.permutations(range(12)))
    fresh = WorkerBatches(images, cut(sizes), batch, seed)
    for t in asked:
        assert torch.equal(fresh.indices(t), rounds[t])


@given(sizes=part_sizes, batch=st.integers(1, 30), seed=st.integers(0, 99))
def test_an_epoch_has_every_point_once(sizes: list[int], batch: int, seed: int) -> None:
    parts = cut(sizes)
    batches = WorkerBatches(numbered(sum(sizes)), parts, batch, seed)
    stream = torch.cat([batches.indices(t) for t in range(20)], dim=1).numpy()
    for worker, part in enumerate(parts):
        epochs = stream.shape[1] // len(part)
        for epoch in stream[worker, : epochs * len(part)].reshape(epochs, -1):
            np.testing.assert_array_equal(np.sort(epoch), part)


def test_epochs_workers_and_seeds_have_different_orders() -> None:
    images = numbered(200)
    same_points = [np.arange(100), np.arange(100)]
    first, second = (WorkerBatches(images, same_points, 100, seed) for seed in (1, 2))
    orders = [first.indices(0)[0], first.indices(0)[1], first.indices(1)[0], second.indices(0)[0]]
    for i, one in enumerate(orders):
        for other in orders[:i]:
            assert (one != other).sum() > 80


def test_a_worker_draws_the_same_whoever_else_takes_part() -> None:
    images = numbered(30, random_flip=True)
    few, many = (WorkerBatches(images, cut([10] * h), 4, 5) for h in (1, 3))
    for t in range(6):
        x, y = few.round(t)
        all_x, all_y = many.round(t)
        assert torch.equal(x[0], all_x[0])
        assert torch.equal(y[0], all_y[0])


def test_shapes_and_labels() -> None:
    images = Digits().load()
    parts = Extreme()(images.train_labels, 10, 1)
    x, y = WorkerBatches(images, parts, 25, 1).round(3)
    assert x.shape == (10, 25, 1, 28, 28)
    assert torch.equal(y, torch.arange(10)[:, None].expand(10, 25))


def test_images_belong_to_their_labels() -> None:
    x, y = WorkerBatches(numbered(40), cut([25, 15]), 8, 1).round(7)
    assert torch.equal((x[..., 0, 0, 0] * 255).round().long() - 1, y)


def test_flips_are_drawn_by_round() -> None:
    batches = WorkerBatches(numbered(200, random_flip=True), cut([100, 100]), 50, 1)
    flipped = []
    for t in (1, 0, 1):
        x, _ = batches.round(t)
        flipped.append(x[..., 0, 0, 1] > 0)
    assert torch.equal(flipped[0], flipped[2])
    assert not torch.equal(flipped[0], flipped[1])
    assert not torch.equal(flipped[0][0], flipped[0][1])
    assert 0.35 < torch.stack(flipped).float().mean() < 0.65


def test_no_flips_without_random_flip() -> None:
    batches = WorkerBatches(numbered(20), cut([20]), 5, 1)
    assert batches.flips(0) is None
    assert (batches.round(0)[0][..., 1] == 0).all()


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_full_batch_in_chunks(chunk: int) -> None:
    batches = WorkerBatches(numbered(30), cut([10, 20]), 5, 1)
    chunks = list(batches.worker(1, chunk=chunk))
    assert all(len(y) <= chunk for _, y in chunks)
    assert torch.cat([y for _, y in chunks]).tolist() == list(range(10, 30))


def test_full_batches_are_flipped_by_round() -> None:
    batches = WorkerBatches(numbered(100, random_flip=True), cut([100]), 5, 1)
    once, again, other = (
        torch.cat([x for x, _ in batches.worker(0, t, chunk)])
        for t, chunk in ((3, 7), (3, 50), (4, 50))
    )
    assert torch.equal(once, again)
    assert not torch.equal(once, other)


def test_bad_arguments_are_named() -> None:
    images = numbered(4)
    with pytest.raises(ValueError, match="WorkerBatches: batch_size"):
        WorkerBatches(images, cut([4]), 0, 1)
    with pytest.raises(ValueError, match="WorkerBatches: seed"):
        WorkerBatches(images, cut([4]), 1, -1)
    with pytest.raises(ValueError, match="WorkerBatches: t"):
        WorkerBatches(images, cut([4]), 1, 1).indices(-1)
    with pytest.raises(BadRequest, match=r"no data for workers \[1\]"):
        WorkerBatches(images, [np.arange(4), np.arange(0)], 1, 1)
    with pytest.raises(BadRequest, match="no data for workers at all"):
        WorkerBatches(images, [], 1, 1)
