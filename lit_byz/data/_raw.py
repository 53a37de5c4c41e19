"""What a data set consists of, before any transform."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lit_byz.errors import BadRequest


@dataclass(frozen=True)
class RawImages:
    """What a data set consists of: pixels as bytes (N, C, H, W) and labels as int64 (N,)."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    def check(self, name: str, shape: Sequence[int], classes: int) -> None:
        """Raise a ``BadRequest`` that says where this is not what data set ``name`` promises."""
        for part in ("train", "test"):
            images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
            if images.dtype != np.uint8 or images.shape[1:] != tuple(shape) or not len(images):
                raise BadRequest(
                    f"data set '{name}': {part}_images is {images.dtype} of shape {images.shape}; "
                    f"it must be uint8 of shape (N, {', '.join(map(str, shape))}), N > 0"
                )
            if labels.dtype != np.int64 or labels.shape != images.shape[:1]:
                raise BadRequest(
                    f"data set '{name}': {part}_labels is {labels.dtype} of shape {labels.shape}; "
                    f"it must be int64 of shape ({len(images)},)"
                )
            if labels.min() < 0 or labels.max() >= classes:
                raise BadRequest(
                    f"data set '{name}': {part}_labels run from {labels.min()} to {labels.max()}; "
                    f"they must be within 0 … {classes - 1}"
                )
