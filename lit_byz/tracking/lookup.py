"""What the store's runs say of a run that is asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lit_byz._versions import VERSIONS, other_torch
from lit_byz.config.grid import Point
from lit_byz.config.identity import environment
from lit_byz.tracking.evaluations import ACCURACY, DIVERGED, MEAN_LAST, VAL_ACCURACY, VAL_MEAN_LAST
from lit_byz.tracking.glances import Glance
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.store import CODE, ENVIRONMENT, IDENTITY, SETTINGS, STATUS

# What has to be known of runs to say how they ended.
TAGS = (IDENTITY, SETTINGS, CODE, ENVIRONMENT, VERSIONS, STATUS, "lit_byz.error")
ACCURACIES = (
    "test/max_accuracy",
    "test/max_accuracy_at_least",
    "val/max_accuracy",
    "val/max_accuracy_at_least",
    "test/accuracy_at_val_max",
    *(ACCURACY, MEAN_LAST, VAL_ACCURACY, VAL_MEAN_LAST),
)


@dataclass(frozen=True)
class Found:
    """What the store has of a run: how it ended, or runs that were killed before they ended.

    ``other_code`` are runs with the same settings and other code; ``other_torch`` is the version
    that made the outcome, where it is not the one that is installed.
    """

    outcome: Outcome | None = None
    begun: Sequence[str] = ()
    other_code: Sequence[str] = ()
    other_torch: str | None = None


def found_of(point: Point, runs: Sequence[Glance]) -> Found:
    """What these runs, all of the point's settings and newest first, say of the point."""
    own = [run for run in runs if run.tags.get(IDENTITY) == point.identity]
    others = [run.tags.get(CODE, "") for run in runs if run not in own]
    begun = [run.run_id for run in own if run.status == "RUNNING"]
    if any(run.status == "FAILED" for run in own):
        # Where something else than the run itself has changed, a failure may not happen again.
        here = environment(point.plain)
        own = [run for run in own if run.status != "FAILED" or run.tags.get(ENVIRONMENT) == here]
    outcome = outcome_of(point.identity, own)
    versions = {run.run_id: run.tags.get(VERSIONS) for run in own}
    torch = None if outcome is None else other_torch(versions.get(str(outcome.run_id)))
    return Found(outcome, begun, list(dict.fromkeys(others)), torch)


def outcome_of(identity: str, runs: Sequence[Glance]) -> Outcome | None:
    """How a run ended, from all attempts at it: a result counts before a failure."""
    ranked: list[tuple[int, Outcome]] = []
    for run in runs:
        metrics, tags = run.metrics, run.tags
        status = tags.get(STATUS, "finished")
        best, at_least = metrics.get("test/max_accuracy"), metrics.get("test/max_accuracy_at_least")
        outcome = Outcome(identity, status, best, run_id=run.run_id, reused=True)
        if run.status == "FINISHED" and best is not None and math.isfinite(best):
            # Older runs that diverged have recorded the mean of evaluations from before that.
            dead = status == DIVERGED
            outcome = replace(
                outcome,
                max_val_accuracy=metrics.get("val/max_accuracy"),
                test_at_val_max=metrics.get("test/accuracy_at_val_max"),
                last_accuracy=metrics.get(ACCURACY),
                mean_last=metrics.get(ACCURACY if dead else MEAN_LAST),
                last_val_accuracy=metrics.get(VAL_ACCURACY),
                val_mean_last=metrics.get(VAL_ACCURACY if dead else VAL_MEAN_LAST),
            )
            ranked.append((0, outcome))
        elif run.status == "KILLED" and status == "bounded" and at_least is not None:
            validated = metrics.get("val/max_accuracy_at_least")
            outcome = replace(outcome, max_accuracy=at_least, max_val_accuracy=validated)
            ranked.append((1, outcome))
        elif run.status == "FAILED":
            error = tags.get("lit_byz.error")
            outcome = Outcome(identity, "failed", run_id=run.run_id, error=error, reused=True)
            ranked.append((2, outcome))
        else:
            outcome = Outcome(identity, "interrupted", run_id=run.run_id, reused=True)
            ranked.append((3, outcome))
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None
