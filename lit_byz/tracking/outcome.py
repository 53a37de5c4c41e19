"""What a run came to, whoever says so: the process that computed it, or the store."""

from dataclasses import dataclass, field, replace

from lit_byz.tracking.worst_case import Accuracy

# What of a run's accuracies a worst case is taken over: the paper's own, and two of the run's end.
MEASURES = ("max_accuracy", "last_accuracy", "mean_last")


@dataclass(frozen=True)
class Outcome:
    """How a run ended: finished, diverged, bounded, interrupted or failed; or it is on elsewhere.

    A bounded run was stopped because it could not matter any more: its maximal accuracy is a lower
    bound. A complete run has a last accuracy too, and the mean of its last few evaluations. Where
    images were held out it has all these on them as well, and the test accuracy at the step of that
    maximum, which is final once the run is complete. ``reused`` says that it had been computed
    before, and nothing was done now. ``disk_full`` says that it was interrupted because there was
    no space left, as any other would be, ``store_gone`` that it waited for the store for too long.
    A failure has its ``traceback``, for whoever asks.
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
    last_accuracy: float | None = None
    mean_last: float | None = None
    last_val_accuracy: float | None = None
    val_mean_last: float | None = None
    disk_full: bool = False
    store_gone: bool = False
    traceback: str | None = field(default=None, compare=False, repr=False)

    def judged_on(self, images: str) -> "Outcome":
        """The same where the accuracy on the images ``test`` or ``val`` is the one that counts."""
        if images == "test":
            return self
        return replace(
            self,
            max_accuracy=self.max_val_accuracy,
            last_accuracy=self.last_val_accuracy,
            mean_last=self.val_mean_last,
        )

    @property
    def complete(self) -> bool:
        return self.status in ("finished", "diverged")

    @property
    def has_result(self) -> bool:
        """Whether there is one, if only a bound."""
        return self.complete or self.status == "bounded"

    @property
    def settled(self) -> bool:
        """Whether it has a result, or will have none however often it is looked at."""
        return self.has_result or self.status == "failed"

    @property
    def accuracy(self) -> Accuracy | None:
        """The maximal accuracy, where there is one."""
        if self.max_accuracy is None or not self.has_result:
            return None
        return Accuracy(self.max_accuracy, self.status == "bounded")

    def measured(self, measure: str) -> Accuracy | None:
        """The accuracy that a measure names, see :data:`MEASURES`.

        How a run that was stopped early would have ended, nobody knows: not even a bound.
        """
        if measure == "max_accuracy":
            return self.accuracy
        value: float | None = getattr(self, measure) if self.complete else None
        return None if value is None else Accuracy(value)
