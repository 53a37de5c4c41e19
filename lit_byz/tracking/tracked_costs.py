"""What runs have cost that are in the store."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lit_byz._machine import machine
from lit_byz.tracking.glances import recent
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.store import MACHINE, flatten

SPEED = "speed/steps_per_second"
# Runs that are looked at, the newest.
NEWEST = 1000
# What decides the cost of a step, and what else has to be known of a run.
PARTS = (
    *("dataset.name", "model.name", "workers.honest", "workers.batch_size", "rule.name"),
    *("attack.name", "attack.search", "workers.f", "mix.name", "clip.name"),
)
ROUGHLY = 7  # so many of them decide most of it
LENGTH = ("train.steps", "train.eval_every")


@dataclass(frozen=True)
class Cost:
    """Seconds of a step and of an evaluation, with its share of all else that a run does."""

    step: float
    evaluation: float


def kinds_of(plain: Mapping[str, Any]) -> list[str]:
    """The kind of a run by what its steps cost, and what that is roughly."""
    sections = {part.partition(".")[0] for part in PARTS}
    return _kinds(flatten({section: plain[section] for section in sections}))


def _kinds(params: Mapping[str, str]) -> list[str]:
    values = [params.get(part, "") for part in PARTS]
    return [repr(values), repr(values[:ROUGHLY])]


def tracked_costs(ledger: Ledger) -> dict[str, Cost]:
    """What the newest runs that this machine has finished took, by kind."""
    found: dict[str, list[Cost]] = {}
    runs = recent(ledger.store, ledger.experiment_id, SPEED, (*PARTS, *LENGTH), MACHINE, NEWEST)
    here = machine()
    for run in runs:
        cost = _cost(run.seconds, run.value, run.params)
        if run.tag == here and cost is not None:
            for kind in _kinds(run.params):
                found.setdefault(kind, []).append(cost)
    return {kind: median(costs) for kind, costs in found.items()}


def median(costs: Sequence[Cost]) -> Cost:
    """The median of what steps and evaluations cost."""
    return Cost(
        statistics.median(cost.step for cost in costs),
        statistics.median(cost.evaluation for cost in costs),
    )


def _cost(seconds: float, speed: float, params: Mapping[str, str]) -> Cost | None:
    """What is left of a run's time beside its steps goes to its evaluations."""
    try:
        steps, every = (int(params[key]) for key in LENGTH)
    except (KeyError, ValueError):
        return None
    if speed <= 0 or steps < 1 or every < 1:
        return None
    rest = max(0.0, seconds - steps / speed)
    return Cost(1 / speed, rest / max(1.0, steps / every))
