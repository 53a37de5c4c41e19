"""Worst-case maximal accuracy: per seed the smallest over the attacks, then mean ± std."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from lit_byz.tracking.store import Store


@dataclass(frozen=True)
class WorstCase:
    """The worst case of a cell: everything but attack and seed is fixed."""

    per_seed: dict[int, float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.per_seed.values())

    @property
    def std(self) -> float:
        """The sample's standard deviation; 0 for one seed."""
        values = list(self.per_seed.values())
        return statistics.stdev(values) if len(values) > 1 else 0.0


def worst_case(results: Iterable[tuple[int, str, float]]) -> WorstCase:
    """From (seed, attack, maximal accuracy) of finished runs.

    >>> worst_case([(1, "sf", 0.9), (1, "foe", 0.5), (2, "sf", 0.8), (2, "foe", 0.7)]).per_seed
    {1: 0.5, 2: 0.7}
    """
    smallest: dict[int, float] = {}
    for seed, _, accuracy in results:
        smallest[seed] = min(accuracy, smallest.get(seed, accuracy))
    if not smallest:
        raise ValueError("worst_case: results must not be empty")
    return WorstCase(dict(sorted(smallest.items())))


def cell_results(
    store: Store, cell_run_id: str, without: str | None = None
) -> list[tuple[int, str, float]]:
    """(seed, attack, maximal accuracy) of the finished runs below a cell."""
    cell = store.client.get_run(cell_run_id)
    runs = store.children(cell.info.experiment_id, cell_run_id)
    return [
        (int(run.data.params["seed"]), run.data.params["attack.name"], best)
        for run in runs
        if run.info.run_id != without
        and run.info.status == "FINISHED"
        and (best := run.data.metrics.get("test/max_accuracy")) is not None
    ]


def write_worst_case(store: Store, run_id: str, results: list[tuple[int, str, float]]) -> None:
    """Record the worst case over ``results`` as metrics of a cell."""
    found = worst_case(results)
    for seed, accuracy in found.per_seed.items():
        store.client.log_metric(run_id, f"worst_case/seed_{seed}", accuracy)
    store.client.log_metric(run_id, "worst_case/max_accuracy", found.mean)
    store.client.log_metric(run_id, "worst_case/max_accuracy_std", found.std)
    store.client.log_metric(run_id, "worst_case/runs", len(results))
