"""What the compiled functions take and return, so that a wrong call raises instead of running."""

import ctypes
from ctypes import c_double, c_int, c_int64
from typing import Any

import torch

SUFFIX = {torch.float32: "f32", torch.float64: "f64"}


class Numbers:
    """An argument that points to a tensor's numbers, which are of one type; None where allowed."""

    def __init__(self, dtype: torch.dtype, optional: bool = False) -> None:
        self.dtype = dtype
        self.optional = optional

    def from_param(self, given: Any) -> ctypes.c_void_p | None:
        """What ctypes passes on for ``given``."""
        if isinstance(given, torch.Tensor) and given.dtype is self.dtype and given.is_cpu:
            return ctypes.c_void_p(given.data_ptr())
        if given is None and self.optional:
            return None
        raise TypeError(f"expected a CPU tensor of {self.dtype}, got {type(given).__name__}")


SINGLE, DOUBLE = Numbers(torch.float32), Numbers(torch.float64)
MAYBE = Numbers(torch.float32, optional=True)
PAIRS, FLAGS, PLACE = Numbers(torch.int32), Numbers(torch.bool), Numbers(torch.int8)
# The structs of images.h, which have nothing but integers.
SHAPE, PLACES = c_int64 * 15, c_int64 * 5

Signature = tuple[Any, tuple[Any, ...]]


def _for_type(dtype: torch.dtype) -> dict[str, Signature]:
    """The functions that there are for numbers of either type, by name."""
    own, maybe, maybe_double = Numbers(dtype), Numbers(dtype, True), Numbers(torch.float64, True)
    rows = (own, c_int64, c_int64, c_int64)
    limits = (c_int64, c_int64, c_int64, c_int64)
    probes = (maybe, c_int64, c_int64, PAIRS, *limits, maybe, maybe, maybe_double)
    biases, window = (maybe, c_int64), (c_int64, c_int64)
    return {
        "columns": (c_int, (*rows, *probes, c_int)),
        "gram": (None, (*rows, DOUBLE, c_int)),
        "squares": (None, (*rows, DOUBLE, c_int)),
        "combine": (c_int, (*rows, own, own, c_int)),
        "spread": (None, (*rows, own, own, c_int)),
        "sample": (c_int, (*rows, own, own, c_double, c_int64, own, c_int)),
        "weight_gradients": (
            None,
            (own, own, SHAPE, c_int64, own, PLACES, *biases, c_double, c_int),
        ),
        "image_gradients": (None, (own, own, PLACES, SHAPE, own, c_int)),
        "pooled_forward": (
            c_int,
            (own, own, PLACES, maybe, SHAPE, *window, own, PLACE, c_int),
        ),
        "pooled_weight_gradients": (
            None,
            (own, PLACE, own, SHAPE, *window, c_int64, own, PLACES, *biases, c_double, c_int),
        ),
        "pooled_image_gradients": (
            None,
            (own, PLACE, own, PLACES, SHAPE, *window, own, c_int),
        ),
    }


_ROWS = (DOUBLE, c_int64, c_int64, c_int64)
# Results and arguments of every function that the library exports.
SIGNATURES: dict[str, Signature] = {
    **{
        f"{name}_{suffix}": signature
        for dtype, suffix in SUFFIX.items()
        for name, signature in _for_type(dtype).items()
    },
    "distances_f64": (
        c_int,
        (*_ROWS, c_int64, DOUBLE, c_double, c_double, DOUBLE, DOUBLE, FLAGS, c_int),
    ),
    "probes_f32": (
        c_int,
        (SINGLE, *_ROWS[1:], SINGLE, *(c_int64,) * 4, SINGLE, SINGLE, MAYBE, DOUBLE, c_int),
    ),
    "mixed_f64": (c_int, (*_ROWS, c_int64, DOUBLE, c_int64, DOUBLE, c_int)),
    "nearest_f64": (c_int, (*_ROWS, c_int64, c_int64, DOUBLE, c_int)),
    "weiszfeld_f64": (c_int, (*_ROWS, DOUBLE, c_double, c_int64, c_double, DOUBLE, c_int)),
}


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """The library, its functions told what they take and return."""
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
