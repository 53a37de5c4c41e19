"""What a run came to, whoever says so: the process that computed it, or the store."""

from dataclasses import dataclass, replace

from lit_byz.tracking.worst_case import Accuracy


@dataclass(frozen=True)
class Outcome:
    """How a run ended: finished, diverged, bounded, interrupted or failed.

    A bounded run was stopped because it could not matter any more: its maximal accuracy is a lower
    bound. Where images were held out it has a maximum on them too, and the test accuracy at that
    step, which is final once the run is complete. ``reused`` says that it had been computed before,
    and nothing was done now.
    """

    identity: str
    status: str
    max_accuracy: float | None = None
    steps_done: int = 0
    seconds: float = 0.0
    run_id: str | None = None
    error: str | None = None
    reused: bool = False
    max_val_accuracy: float | None = None
    test_at_val_max: float | None = None

    def judged_on(self, images: str) -> "Outcome":
        """The same where the accuracy on the images ``test`` or ``val`` is the one that counts."""
        return self if images == "test" else replace(self, max_accuracy=self.max_val_accuracy)

    @property
    def complete(self) -> bool:
        return self.status in ("finished", "diverged")

    @property
    def settled(self) -> bool:
        """Whether it has a result, or will have none however often it is looked at."""
        return self.complete or self.status in ("bounded", "failed")

    @property
    def accuracy(self) -> Accuracy | None:
        """The maximal accuracy, where there is one."""
        if self.max_accuracy is None or not (self.complete or self.status == "bounded"):
            return None
        return Accuracy(self.max_accuracy, self.status == "bounded")
