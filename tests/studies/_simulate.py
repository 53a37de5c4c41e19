"""Strategies against a made-up accuracy function: no store, no process, no training."""

from collections.abc import Callable, Sequence
from typing import Any

from lit_byz.config.grid import Grid, Point, points
from lit_byz.execution.board import Proposal, Strategy
from lit_byz.tracking.outcome import Outcome

BASE: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "tracking": {"figures": False},
    "workers": {"honest": 6, "batch_size": 8},
    "train": {"steps": 40, "eval_every": 10, "checkpoint_every": 5},
}
Accuracy = Callable[[Point], float]


def grid_points(**axes: Sequence[Any]) -> list[Point]:
    return points(Grid(BASE, {key: list(values) for key, values in axes.items()}))


def outcome_of(proposal: Proposal, accuracy: Accuracy) -> Outcome:
    """A run of this accuracy, stopped where the strategy allows it to be."""
    value, bound = accuracy(proposal.point), proposal.stop_above
    if bound is not None and value >= bound:
        return Outcome(proposal.point.identity, "bounded", bound, 20, run_id="a run")
    return Outcome(proposal.point.identity, "finished", value, 40, 1.0, run_id="a run")


def simulate(strategy: Strategy, accuracy: Accuracy, width: int = 1) -> list[Point]:
    """Compute all that a strategy proposes, ``width`` runs at a time, the last one first."""
    asked: list[Point] = []
    on: list[Proposal] = []
    while True:
        while len(on) < width and (proposal := strategy.propose()) is not None:
            on.append(proposal)
            asked.append(proposal.point)
        if not on:
            return asked
        strategy.hear(outcome_of(on.pop(), accuracy))


def by_table(table: dict[str, float]) -> Accuracy:
    """Accuracies by attack."""
    return lambda point: table[point.attack]
