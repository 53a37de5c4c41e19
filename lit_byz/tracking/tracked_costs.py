"""What runs have cost that are in the store."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lit_byz._machine import machine
from lit_byz.tracking.glances import recent
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.store import MACHINE, flatten

SPEED = "speed/steps_per_second"
# Seconds that a run takes beside its steps and evaluations: its data, its figures, its tables.
OVERHEAD = 1.5
# Runs that are looked at, the newest.
NEWEST = 1000
# What decides the cost of a step: the work of the honest workers, with the model's arguments, then
# that of server and attackers, then what changes little.
LOAD = (
    *("dataset.name", "model.name", "workers.honest", "workers.batch_size", "train.local_steps"),
    *("train.full_batch", "train.gradients", "data.validation"),
)
SERVER = ("rule.name", "attack.name", "attack.search")
LITTLE = ("workers.f", "mix.name", "clip.name")
# What else has to be known of a run.
LENGTH = ("train.steps", "train.eval_every")
PARTS = (*LOAD, *SERVER, *LITTLE, *LENGTH)
# An argument of models that changes their parameters, and not what they cost.
FREE = "model.init_scale"


@dataclass(frozen=True)
class Cost:
    """Seconds of a step, of an evaluation, and of a run beside these."""

    step: float
    evaluation: float
    run: float = 0.0


def evaluations(steps: int, every: int) -> int:
    """How often a run is evaluated: the last step always is."""
    return math.ceil(steps / every)


def kinds_of(plain: Mapping[str, Any]) -> list[str]:
    """The kind of a run by what its steps cost, and what that is roughly."""
    return _kinds(_params(plain))[:2]


def load_of(plain: Mapping[str, Any]) -> str:
    """What a run's steps cost its honest workers, whatever server and attackers do."""
    return _kinds(_params(plain))[2]


def _params(plain: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, Any] = {"model": plain["model"]}
    for part in PARTS:
        section, _, key = part.partition(".")
        if key in plain[section]:
            found[part] = plain[section][key]
    return flatten(found)


def _kinds(params: Mapping[str, str]) -> list[str]:
    """From the most to the least exact; what a run does not say is like nothing else.

    A run of one step, such as one for initial gradients, speaks for no others.
    """
    model = sorted(
        (key, text) for key, text in params.items() if key.startswith("model.") and key != FREE
    )
    single = params.get("train.steps") == "1"
    load = [single, model, *(params.get(part, "") for part in LOAD)]
    roughly = [*load, *(params.get(part, "") for part in SERVER)]
    exactly = [*roughly, *(params.get(part, "") for part in LITTLE)]
    return [repr(exactly), repr(roughly), repr(load)]


def tracked_costs(ledger: Ledger, wanted: Iterable[Mapping[str, Any]]) -> dict[str, Cost]:
    """What the newest runs that this machine has finished took, by kind and by load.

    The models' arguments that tell kinds apart are those of the ``wanted`` runs.
    """
    models = {id(plain["model"]): plain["model"] for plain in wanted}  # most runs share one
    arguments = {key for model in models.values() for key in flatten({"model": model})}
    asked = sorted({*PARTS, *arguments})
    found: dict[str, list[Cost]] = {}
    runs = recent(ledger.store, ledger.experiment_id, SPEED, asked, MACHINE, NEWEST)
    here = machine()
    for run in runs:
        cost = _cost(run.seconds, run.value, run.params)
        if run.tag == here and cost is not None:
            for kind in _kinds(run.params):
                found.setdefault(kind, []).append(cost)
    return {kind: median(costs) for kind, costs in found.items()}


def median(costs: Sequence[Cost]) -> Cost:
    """The median of what steps, evaluations and all else cost."""
    return Cost(
        statistics.median(cost.step for cost in costs),
        statistics.median(cost.evaluation for cost in costs),
        statistics.median(cost.run for cost in costs),
    )


def _cost(seconds: float, speed: float, params: Mapping[str, str]) -> Cost | None:
    """What is left of a run's time beside its steps, and what every run takes, was evaluation."""
    try:
        steps, every = (int(params[key]) for key in LENGTH)
    except (KeyError, ValueError):
        return None
    if speed <= 0 or steps < 1 or every < 1:
        return None
    rest = max(0.0, seconds - steps / speed)
    once = min(rest, OVERHEAD)
    return Cost(1 / speed, (rest - once) / evaluations(steps, every), once)
