"""The floor of a sweep: plain gradients in several processes at once, one thread each.

Cores share memory, caches and power: a step takes longer while every core computes one. That is how
a sweep's processes work, and the best that it could reach.
"""

import multiprocessing
import statistics
import time
from multiprocessing.synchronize import Barrier
from typing import Any

from lit_byz.benchmark._simulations import HOPELESS, floors, synthetic_batches


def floor_side_by_side(model: str, honest: int, processes: int, seconds: float) -> float:
    """Seconds of a step's plain gradients while so many processes compute the same."""
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(processes)
    results = context.SimpleQueue()
    started = [
        context.Process(target=_compute, args=(model, honest, seconds, together, results))
        for _ in range(processes)
    ]
    for process in started:
        process.start()
    found = [results.get() for _ in started]
    for process in started:
        process.join()
    return statistics.mean(found)


def _compute(model: str, honest: int, seconds: float, together: Barrier, results: Any) -> None:
    import torch

    torch.set_num_threads(1)
    passes = floors(synthetic_batches(honest, model), model)
    fastest = {}
    for name, step in passes.items():
        step()
        begin = time.perf_counter()
        step()
        fastest[name] = time.perf_counter() - begin
    limit = HOPELESS * min(fastest.values())
    taken: dict[str, list[float]] = {name: [] for name in passes if fastest[name] <= limit}
    together.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, found in taken.items():
            begin = time.perf_counter()
            passes[name]()
            found.append(time.perf_counter() - begin)
    results.put(min(map(statistics.median, taken.values())))
