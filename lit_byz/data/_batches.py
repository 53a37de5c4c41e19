"""The honest workers' batches, each recomputable from (seed, worker, round) alone."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from lit_byz._checks import check_integer
from lit_byz._streams import Stream, numpy_generator
from lit_byz.data._images import ImageData
from lit_byz.errors import BadRequest


class WorkerBatches:
    """Stacked batches of all honest workers, for any round, in any order.

    Worker i runs through its points again and again, each time (epoch) in a new random order
    drawn from (seed, i, epoch); round t takes places t·b to (t + 1)·b − 1 of that endless
    stream. So nothing is drawn twice within an epoch, a batch may reach over the end of an epoch,
    and one of a worker with fewer than b points over several. There is no state but a memory of
    the orders last used. ``held_out`` are the points that no worker has, for validation.
    ``first`` is the number of the first worker, where these are some of a run's.
    """

    def __init__(
        self,
        images: ImageData,
        parts: Sequence[np.ndarray],
        batch_size: int,
        seed: int,
        held_out: Sequence[int] | np.ndarray = (),
        first: int = 0,
    ) -> None:
        check_integer(self, "batch_size", batch_size, 1)
        check_integer(self, "seed", seed, 0)
        empty = [worker for worker, part in enumerate(parts) if not len(part)]
        if empty or not len(parts):
            raise BadRequest(f"WorkerBatches: no data for workers {empty or 'at all'}")
        self.images = images
        self.parts = [np.asarray(part, dtype=np.int64) for part in parts]
        self.held_out = np.asarray(held_out, dtype=np.int64)
        self.batch_size = batch_size
        self.seed = seed
        self.first = first
        self._orders: list[tuple[int, np.ndarray]] = [(-1, part) for part in self.parts]

    @property
    def workers(self) -> int:
        return len(self.parts)

    def some(self, workers: slice) -> "WorkerBatches":
        """The batches of some of the workers, as they draw them among all."""
        parts, first = self.parts[workers], self.first + workers.start
        return WorkerBatches(self.images, parts, self.batch_size, self.seed, self.held_out, first)

    def indices(self, t: int) -> Tensor:
        """Which training points the workers draw in round ``t``: (h, b)."""
        check_integer(self, "t", t, 0)
        drawn = np.empty((self.workers, self.batch_size), np.int64)
        for worker, part in enumerate(self.parts):
            epoch, place = divmod(t * self.batch_size, len(part))
            filled = 0
            while filled < self.batch_size:
                order = self._order(worker, epoch)
                run = order[place : place + self.batch_size - filled]
                drawn[worker, filled : filled + len(run)] = run
                filled += len(run)
                epoch, place = epoch + 1, 0
        return torch.from_numpy(drawn)

    def flips(self, t: int) -> Tensor | None:
        """Which of the points drawn in round ``t`` are flipped: (h, b), or None for none.

        Row i is one stretch of a stream drawn from (seed, t), and so belongs to worker i however
        many workers there are.
        """
        if not self.images.random_flip:
            return None
        rng = numpy_generator(self.seed, Stream.FLIPS, t)
        drawn = rng.random((self.first + self.workers, self.batch_size)) < 0.5
        return torch.from_numpy(drawn[self.first :])

    def round(self, t: int) -> tuple[Tensor, Tensor]:
        """Images (h, b, C, H, W) and labels (h, b) of round ``t``."""
        return self.images.train_batch(self.indices(t), self.flips(t))

    def worker(self, worker: int, t: int = 0, chunk: int = 1000) -> Iterator[tuple[Tensor, Tensor]]:
        """All points of one worker, each once, in chunks; flips are those of round ``t``."""
        part = torch.from_numpy(self.parts[worker])
        flips = None
        if self.images.random_flip:
            rng = numpy_generator(self.seed, Stream.FLIPS, t, 1 + self.first + worker)
            flips = torch.from_numpy(rng.random(len(part)) < 0.5)
        for start in range(0, len(part), chunk):
            where = slice(start, start + chunk)
            yield self.images.train_batch(part[where], None if flips is None else flips[where])

    def held_out_batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The points held out, so many at once, never flipped."""
        for start in range(0, len(self.held_out), size):
            yield self.images.train_batch(torch.from_numpy(self.held_out[start : start + size]))

    def _order(self, worker: int, epoch: int) -> np.ndarray:
        known, order = self._orders[worker]
        if known != epoch:
            rng = numpy_generator(self.seed, Stream.ORDERS, self.first + worker, epoch)
            order = rng.permutation(self.parts[worker])
            self._orders[worker] = (epoch, order)
        return order
