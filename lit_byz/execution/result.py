"""What a run came to: as it has just been computed, or as the store has it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lit_byz._versions import VERSIONS, other_torch
from lit_byz.errors import BadRequest
from lit_byz.execution.kept import load_model
from lit_byz.tracking.evaluations import MEAN_LAST, means
from lit_byz.tracking.renamed import OLD_THRESHOLD, THRESHOLD
from lit_byz.tracking.runs import TrackedRun
from lit_byz.tracking.store import STATUS

if TYPE_CHECKING:
    from torch import nn

Points = list[tuple[int, float]]


@dataclass(frozen=True)
class TrainResult:
    """What a run came to. ``status`` is finished, diverged, interrupted or bounded.

    A bounded run was stopped because its maximal accuracy had passed a bound that was given: its
    maximum is a lower bound of what it would have reached. ``history`` maps each metric's name to
    its (step, value) pairs. ``reused`` says that the run had been finished before, and nothing was
    computed; ``other_torch`` is the version that computed it, where it is not the one that is
    installed. ``other_code`` names the code of runs with the same settings that were not taken,
    because other code has begun them. With ``data.validation`` there is a maximum on the images
    held out as well, and the test accuracy at that step. Steps are counted from 0. A run that was
    interrupted before its first evaluation has NaN for accuracies.
    """

    status: str
    max_accuracy: float
    step_of_max: int
    accuracy: float
    history: dict[str, Points]
    run_id: str | None
    identity: str
    seconds: float
    steps_done: int
    gradients: str | None
    reused: bool = False
    resumed_at: int | None = None
    other_code: tuple[str, ...] = ()
    trained: "nn.Module | None" = None
    max_val_accuracy: float | None = None
    test_at_val_max: float | None = None
    other_torch: str | None = None

    @property
    def mean_last(self) -> float | None:
        """The mean of the last five test accuracies, or of all where there are fewer.

        Of a run that diverged it is the last one.
        """
        return means(self.history, self.status).get(MEAN_LAST)

    @property
    def model(self) -> "nn.Module":
        """The trained model in evaluation mode; a reused run's is read from the store.

        It has the last parameters, and with ``train.output=random_iterate`` θ̂, unless the run ended
        before it came to them.
        """
        if self.trained is not None:
            return self.trained
        if self.run_id is None:
            raise BadRequest("the run is not tracked: its model was not kept")
        return load_model(self.run_id, uri=self.store_uri)

    store_uri: str | None = None


def from_store(run: TrackedRun) -> TrainResult:
    """The result of a run that had been finished before."""
    assert run.store is not None and run.run_id is not None  # noqa: PT018
    found = run.store.client.get_run(run.run_id)
    keys = found.data.metrics
    names = {*keys, THRESHOLD} if OLD_THRESHOLD in keys else set(keys)
    history = {key: run.store.history(run.run_id, key) for key in names}
    return TrainResult(
        status=found.data.tags.get(STATUS, "finished"),
        max_accuracy=keys["test/max_accuracy"],
        step_of_max=int(keys["step_of_max"]),
        accuracy=keys.get("test/accuracy", 0.0),
        history=history,
        run_id=run.run_id,
        identity=run.identity,
        seconds=0.0,
        steps_done=len(history.get("server/non_finite", [])),
        gradients=found.data.tags.get("lit_byz.gradients"),
        reused=True,
        store_uri=run.store.uri,
        max_val_accuracy=keys.get("val/max_accuracy"),
        test_at_val_max=keys.get("test/accuracy_at_val_max"),
        other_torch=other_torch(found.data.tags.get(VERSIONS)),
    )
