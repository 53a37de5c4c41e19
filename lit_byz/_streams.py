"""Random numbers: each use of a seed has its own stream, named here and nowhere else.

A draw depends on the seed, its stream and whatever else the caller names (a worker, a step, …), and
not on what was drawn before.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum, unique
from functools import cache

import numpy as np
import torch

# Torch's global random numbers belong to the whole process: whoever starts them anew does so alone.
ALONE = threading.RLock()
# More steps than a run has: those of the next seed do not meet those of this one.
STRIDE = 1_000_003


@unique
class Stream(IntEnum):
    """What is drawn. A number means the same draws for ever; a new use takes a new number."""

    ORDERS = 1  # in which a worker runs through its points
    FLIPS = 2  # of training images
    PARTITIONS = 3  # of the training points among workers
    ITERATES = 4  # which of a run's parameters it returns
    MASKS = 5  # of dropout
    BUCKETS = 6  # of vectors
    INITIAL = 7  # parameters of a model
    LAYERS = 8  # of models that draw on their own
    MIMIC = 9  # the attack's first direction
    NOISE = 10  # of the Gaussian attack
    BAD_INPUTS = 11  # where the search for them starts
    DIGITS = 12  # which of them are the test set
    BENCHMARKS = 13  # made-up vectors and images
    PROBES = 14  # images and parameters on which methods of computing gradients are compared
    SPAN = 15  # where the strongest attack's search goes
    VALIDATION = 16  # which training points are held out


# These start from their seeds alone, without their numbers, as they did before they had any: runs
# made then can be repeated bit for bit. A new stream does not belong here.
UNNUMBERED = frozenset(
    {
        *(Stream.BUCKETS, Stream.INITIAL, Stream.LAYERS, Stream.MIMIC, Stream.NOISE),
        *(Stream.BAD_INPUTS, Stream.DIGITS, Stream.BENCHMARKS),
    }
)


def numpy_generator(seed: int, stream: Stream, *where: int) -> np.random.Generator:
    """NumPy's random numbers for (seed, stream, where)."""
    return np.random.default_rng(_key(seed, stream, where))


def torch_generator(seed: int, stream: Stream, *where: int) -> torch.Generator:
    """Torch's random numbers for (seed, stream, where), on the CPU."""
    return torch.Generator().manual_seed(_torch_seed(seed, stream, where))


def seed_torch(seed: int, stream: Stream, *where: int) -> None:
    """Start the global random numbers of torch, on all devices, from (seed, stream, where)."""
    value = _torch_seed(seed, stream, where)
    if _has_accelerator():
        torch.manual_seed(value)
    else:  # torch.manual_seed would format a traceback for every kind of device that is not there
        torch.default_generator.manual_seed(value)


def remember_torch() -> Callable[[], None]:
    """What makes torch's global random numbers, on all devices, what they are now."""
    state = torch.get_rng_state()
    devices = torch.get_device_module().get_rng_state_all() if _many_devices() else None

    def back() -> None:
        torch.set_rng_state(state)
        if devices is not None:
            torch.get_device_module().set_rng_state_all(devices)

    return back


def _many_devices() -> bool:
    """Whether there is an accelerator that has random numbers for each of its devices."""
    return _has_accelerator() and hasattr(torch.get_device_module(), "get_rng_state_all")


@cache
def _has_accelerator() -> bool:
    return torch.accelerator.is_available()


@contextmanager
def seeded_torch(seed: int, stream: Stream, *where: int) -> Iterator[None]:
    """The same for the CPU and for a while: afterwards they are what they were."""
    with ALONE, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_torch_seed(seed, stream, where))
        yield


def _key(seed: int, stream: Stream, where: tuple[int, ...]) -> tuple[int, ...]:
    return (seed, *where) if stream in UNNUMBERED else (seed, int(stream), *where)


def _torch_seed(seed: int, stream: Stream, where: tuple[int, ...]) -> int:
    if stream not in UNNUMBERED:
        return int(np.random.SeedSequence(_key(seed, stream, where)).generate_state(1)[0])
    if not where:
        return seed
    (step,) = where
    return (seed * STRIDE + step) % 2**64  # as many bits as torch takes
