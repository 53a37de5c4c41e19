"""What a data set consists of, before any transform."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lit_byz.errors import BadRequest

PARTS = ("train", "test")


@dataclass(frozen=True)
class RawImages:
    """What a data set consists of: inputs (N, …) and labels as int64 (N,).

    Inputs are pixels as bytes (N, C, H, W), or anything else that a model takes, as floating-point
    numbers: features (N, d), sequences (N, T, d), images.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @classmethod
    def of(cls, name: str, found: Any) -> "RawImages":
        """What data set ``name`` has read: this, or four arrays or tensors in this order.

        Labels of any whole-number type, and inputs of any other number type than bytes, are
        brought to the types that are computed with.
        """
        if isinstance(found, RawImages):
            given: Sequence[Any] = tuple(vars(found).values())
        elif isinstance(found, tuple | list) and len(found) == 4:
            given = found
        else:
            got = f"{len(found)} values" if isinstance(found, tuple | list) else _kind(found)
            raise BadRequest(
                f"data set '{name}': read must return four arrays, the training inputs and their "
                f"labels, the test inputs and their labels, got {got}"
            )
        for part, array in zip(cls.__dataclass_fields__, given, strict=True):
            count = np.ma.count_masked(array) if isinstance(array, np.ma.MaskedArray) else 0
            if count:
                raise BadRequest(f"data set '{name}': {part} has {count} masked entries; fill them")
        try:
            x, y, x_test, y_test = (np.asarray(part) for part in given)
        except (TypeError, ValueError, RuntimeError) as error:  # ragged, or not on the CPU
            reason = " ".join(str(error).split())
            raise BadRequest(f"data set '{name}': read must return arrays: {reason}") from error
        return cls(_inputs(x), _labels(y), _inputs(x_test), _labels(y_test))

    @property
    def bytes(self) -> bool:
        """Whether the inputs are pixels as bytes."""
        return self.train_images.dtype == np.uint8

    def digest(self) -> str:
        """A hash of every value, its type and its place."""
        found = hashlib.sha256()
        for array in vars(self).values():
            found.update(f"{array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def check(self, name: str, shape: Sequence[int], classes: int) -> None:
        """Raise a ``BadRequest`` that says where this is not what data set ``name`` promises."""
        if not len(shape):
            raise BadRequest(f"data set '{name}': shape must have at least one dimension, got ()")
        for part in PARTS:
            images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
            known = (np.uint8, np.float32, np.float64)
            if images.dtype not in known or images.shape[1:] != tuple(shape) or not len(images):
                sizes = "".join(f", {size}" for size in shape) or ","
                raise BadRequest(
                    f"data set '{name}': {part}_images is {images.dtype} of shape {images.shape}; "
                    f"it must be uint8 (pixels) or floating-point, of shape (N{sizes}), N > 0"
                )
            if images.dtype != self.train_images.dtype:
                raise BadRequest(
                    f"data set '{name}': {part}_images is {images.dtype}, and train_images is "
                    f"{self.train_images.dtype}"
                )
            _check_finite(f"data set '{name}': {part}_images", images)
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


def _check_finite(what: str, images: np.ndarray) -> None:
    """Refuse numbers that are not finite, or are not in the 32 bits that models compute with."""
    if images.dtype == np.uint8:
        return
    with np.errstate(over="ignore"):
        finite = np.isfinite(images.astype(np.float32, copy=False))
    if finite.all():
        return
    count = int((~np.isfinite(images)).sum())
    if count:
        raise BadRequest(f"{what} has {count} values that are not finite")
    raise BadRequest(
        f"{what} has {int((~finite).sum())} values beyond ±{np.finfo(np.float32).max:.3g}, the "
        "largest of 32 bits, with which models compute"
    )


def _kind(found: Any) -> str:
    return "None: is a return missing?" if found is None else f"a {type(found).__name__}"


def _inputs(found: np.ndarray) -> np.ndarray:
    """Whole numbers other than bytes, truth values and half precision as float32."""
    wide = found.dtype in (np.uint8, np.float32, np.float64)
    return found if wide or found.dtype.kind not in "fiub" else found.astype(np.float32)


def _labels(found: np.ndarray) -> np.ndarray:
    return found.astype(np.int64, copy=False) if found.dtype.kind in "iub" else found
