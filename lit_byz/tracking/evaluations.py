"""The end of a run's accuracy curve: its last evaluation, and the mean of the last five.

The maximum over a noisy run grows with the number of times one looks; these two do not.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from lit_byz.tracking import tables
from lit_byz.tracking.store import STATUS, Store
from lit_byz.tracking.tables import Glance

LAST_FEW = 5
DIVERGED = "diverged"
ACCURACY, MEAN_LAST = "test/accuracy", f"test/mean_last_{LAST_FEW}"
VAL_ACCURACY, VAL_MEAN_LAST = "val/accuracy", f"val/mean_last_{LAST_FEW}"
Points = Sequence[tuple[int, float]]
# Before the first step.
INITIAL = "test/initial_accuracy"
# Of θ̂, the parameters after a step that is drawn in advance.
RANDOM_ITERATE = "test/random_iterate_accuracy"
# What each is the mean of.
MEANS = {MEAN_LAST: ACCURACY, VAL_MEAN_LAST: VAL_ACCURACY}


def means(history: Mapping[str, Points], status: str) -> dict[str, float]:
    """The means of a run's last evaluations, from the (step, value) pairs of its metrics.

    A run that diverged was stopped at its first dead evaluation; had it gone on, the last five
    would all have been as dead. Those from before would flatter it.
    """
    found = ((mean, history.get(accuracy)) for mean, accuracy in MEANS.items())
    few = 1 if status == DIVERGED else LAST_FEW
    return {mean: statistics.fmean(value for _, value in p[-few:]) for mean, p in found if p}


def add_means(store: Store, runs: Iterable[Glance]) -> None:
    """Give finished runs of before, which did not record it, the mean that their series has.

    One whose series the store has not got stays without: nobody knows it.
    """
    for mean, accuracy in MEANS.items():
        lacking = {
            run.run_id: run
            for run in runs
            if run.status == "FINISHED" and accuracy in run.metrics and mean not in run.metrics
        }
        for run_id, points in _series(store, list(lacking), accuracy):
            run = lacking[run_id]
            run.metrics.update(means({accuracy: points}, run.tags.get(STATUS, "finished")))


def _series(store: Store, run_ids: Sequence[str], key: str) -> Iterable[tuple[str, Points]]:
    if not run_ids:
        return []
    if tables.is_read(store.uri):
        return store.patience.call(tables.series, store.uri, run_ids, key).items()
    return ((run_id, store.history(run_id, key)) for run_id in run_ids)
