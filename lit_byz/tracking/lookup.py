"""What the store's runs say of a run that is asked for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lit_byz.config.grid import Point
from lit_byz.config.identity import environment
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.store import CODE, ENVIRONMENT, IDENTITY

if TYPE_CHECKING:
    from mlflow.entities import Run


@dataclass(frozen=True)
class Found:
    """What the store has of a run: how it ended, or runs that were killed before they ended.

    ``other_code`` are runs with the same settings and other code.
    """

    outcome: Outcome | None = None
    begun: Sequence[str] = ()
    other_code: Sequence[str] = ()


def found_of(point: Point, runs: "Sequence[Run]") -> Found:
    """What these runs, all of the point's settings, say of the point."""
    own = [run for run in runs if run.data.tags.get(IDENTITY) == point.identity]
    others = [run.data.tags.get(CODE, "") for run in runs if run not in own]
    here = environment(point.plain)
    # Where something else than the run itself has changed, a failure may not happen again.
    able = [r for r in own if r.info.status != "FAILED" or r.data.tags.get(ENVIRONMENT) == here]
    begun = [str(run.info.run_id) for run in own if run.info.status == "RUNNING"]
    return Found(outcome_of(point.identity, able), begun, list(dict.fromkeys(others)))


def outcome_of(identity: str, runs: "Sequence[Run]") -> Outcome | None:
    """How a run ended, from all attempts at it: a result counts before a failure."""
    ranked: list[tuple[int, Outcome]] = []
    for run in runs:
        metrics, tags, run_id = run.data.metrics, run.data.tags, str(run.info.run_id)
        status = tags.get("lit_byz.status", "finished")
        best, at_least = metrics.get("test/max_accuracy"), metrics.get("test/max_accuracy_at_least")
        outcome = Outcome(identity, status, best, run_id=run_id, reused=True)
        if run.info.status == "FINISHED" and best is not None and math.isfinite(best):
            outcome = replace(
                outcome,
                max_val_accuracy=metrics.get("val/max_accuracy"),
                test_at_val_max=metrics.get("test/accuracy_at_val_max"),
            )
            ranked.append((0, outcome))
        elif run.info.status == "KILLED" and status == "bounded" and at_least is not None:
            validated = metrics.get("val/max_accuracy_at_least")
            outcome = replace(outcome, max_accuracy=at_least, max_val_accuracy=validated)
            ranked.append((1, outcome))
        elif run.info.status == "FAILED":
            error = tags.get("lit_byz.error")
            ranked.append((2, Outcome(identity, "failed", run_id=run_id, error=error, reused=True)))
        else:
            ranked.append((3, Outcome(identity, "interrupted", run_id=run_id, reused=True)))
    return min(ranked, key=lambda pair: pair[0])[1] if ranked else None
