"""Timing several functions fairly: warmed up, in turns, by the median."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from lit_byz._native import instructions
from lit_byz._processor import processor
from lit_byz.benchmark._ratio import Ratio


@dataclass(frozen=True)
class Timings:
    """Seconds of each repeat, by name; repeat i of all names ran back to back.

    Some may have fewer repeats than others, the first ones.
    """

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, base: str) -> Ratio:
        """How many times as long ``name`` takes as ``base``."""
        return Ratio.of(self.seconds[name], self.seconds[base])

    def median_difference(self, name: str, base: str) -> float:
        """How much longer ``name`` takes than ``base``, from the pairs that ran back to back."""
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        return statistics.median(a - b for a, b in pairs)


def take_turns(
    functions: Mapping[str, Callable[[torch.Tensor], object]],
    x: torch.Tensor,
    *,
    repeats: int,
    budget: float,
) -> Timings:
    """Time each function on fresh copies of ``x``, all of them once per repeat.

    A first, untimed call of each compiles and allocates. Copies are made outside the clock, as some
    functions change their input. After ``budget`` seconds no repeat is begun, but two are always
    made.
    """
    for function in functions.values():
        function(x.clone())
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    begin = time.perf_counter()
    for repeat in range(repeats):
        if repeat >= 2 and time.perf_counter() - begin > budget:
            break
        for name, function in functions.items():
            copy = x.clone()
            start = time.perf_counter()
            function(copy)
            seconds[name].append(time.perf_counter() - start)
    return Timings(seconds)


def free_memory() -> int:
    """Bytes of memory that are free now (a guess where the system does not say)."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def machine() -> dict[str, str | int]:
    """What the numbers depend on."""
    return {
        "processor": processor(),
        "instructions": instructions(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
