"""One run, as it travels to whatever computes it, and how far it is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lit_byz.config.identity import Identity


@dataclass(frozen=True)
class Task:
    """A run to compute: a composed config as plain data, so that it can be sent anywhere.

    ``stop_above`` is the maximal accuracy beyond which the run cannot matter any more, on the
    images that ``judged_on`` names: ``test``, or ``val`` for those held out. ``name`` is what the
    run is called in the store. With ``wait`` a run that another process computes is waited for.
    """

    config: dict[str, Any]
    code: "Identity"
    parent_run_id: str | None = None
    stop_above: float | None = None
    judged_on: str = "test"
    name: str | None = None
    wait: bool = True

    @property
    def identity(self) -> str:
        return self.code.digest


@dataclass(frozen=True)
class Progress:
    """How far a task is; ``note`` is something that whoever watches should read."""

    identity: str
    step: int
    steps: int
    max_accuracy: float
    note: str = ""
