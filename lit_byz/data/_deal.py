"""Who gets which training points: those held out for validation, and the honest workers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lit_byz._checks import check_number
from lit_byz._streams import Stream, numpy_generator
from lit_byz.data._images import ImageData
from lit_byz.data._partitions import Partition
from lit_byz.errors import BadRequest


@dataclass(frozen=True)
class Deal:
    """The workers' points, and those that no worker ever sees."""

    parts: Sequence[np.ndarray]
    held_out: np.ndarray


def deal(
    images: ImageData, partition: Partition, workers: int, seed: int, validation: float = 0.0
) -> Deal:
    """Hold out a share ``validation`` of every class, then deal the rest to the workers.

    Where the training set holds every image twice, the second time flipped, both copies are held
    out, and the first is what is validated on.
    """
    check_number("WorkerData", "validation", validation, 0, 0.9)
    labels = images.train_labels.cpu().numpy()
    if validation == 0:
        return Deal(partition(labels, workers, seed), np.empty(0, np.int64))
    distinct = len(labels) // 2 if images.doubled else len(labels)
    held_out = _of_every_class(labels[:distinct], validation, seed)
    if not len(held_out):
        raise BadRequest(f"data.validation={validation:g}: holds out none of {distinct} images")
    seen = np.ones(len(labels), bool)
    seen[held_out] = False
    if images.doubled:
        seen[distinct + held_out] = False
    rest = np.flatnonzero(seen)
    return Deal([rest[part] for part in partition(labels[rest], workers, seed)], held_out)


def _of_every_class(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """So many points of every class, sorted; at least one of each is left for training."""
    chosen = []
    for label in np.unique(labels):
        points = np.flatnonzero(labels == label)
        rng = numpy_generator(seed, Stream.VALIDATION, int(label))
        count = min(round(share * len(points)), len(points) - 1)
        chosen.append(rng.permutation(points)[:count])
    return np.sort(np.concatenate(chosen))
