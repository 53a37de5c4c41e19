"""One run of a sweep, as it travels to whatever computes it, and what comes back."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """A run to compute: a plain config, so that it can be sent anywhere.

    ``stop_above`` is the maximal accuracy beyond which the run cannot matter any more.
    """

    index: int
    config: dict[str, Any]
    parent_run_id: str | None = None
    stop_above: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a task is."""

    index: int
    step: int
    steps: int
    max_accuracy: float


@dataclass(frozen=True)
class Outcome:
    """How a task ended: finished, diverged, bounded, interrupted or failed."""

    index: int
    status: str
    max_accuracy: float | None = None
    steps_done: int = 0
    seconds: float = 0.0
    run_id: str | None = None
    error: str | None = None
    reused: bool = False

    @property
    def complete(self) -> bool:
        return self.status in ("finished", "diverged")
