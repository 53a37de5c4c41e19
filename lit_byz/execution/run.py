"""One experiment: from a config to a tracked, resumable run and its result."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from lit_byz.config.compose import compose, to_plain
from lit_byz.config.identity import Identity, identify, of_callbacks
from lit_byz.errors import BadRequest
from lit_byz.execution.assemble import (
    make_module,
    make_trainer,
    quiet_lightning,
    users_callbacks,
)
from lit_byz.execution.checkpoints import KeepIdentity, digest_of, identity_in, refuse_other_run
from lit_byz.execution.devices import several_devices
from lit_byz.execution.kept import kept_models, load_model, save_models
from lit_byz.tracking.names import label
from lit_byz.tracking.runs import (
    Attempt,
    TrackedRun,
    checkpoint_given,
    claimed,
    computed_otherwise,
    open_run,
)

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
    from torch import nn

    from lit_byz.training import RobustDSGD

Points = list[tuple[int, float]]


@dataclass(frozen=True)
class TrainResult:
    """What a run came to. ``status`` is finished, diverged, interrupted or bounded.

    A bounded run was stopped because its maximal accuracy had passed a bound that was given: its
    maximum is a lower bound of what it would have reached. ``history`` maps each metric's name to
    its (step, value) pairs. ``reused`` says that the run had been finished before, and nothing was
    computed. ``other_code`` names the code of runs with the same settings that were not taken,
    because other code has computed them. With ``data.validation`` there is a maximum on the images
    held out as well, and the test accuracy at that step.
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

    @property
    def model(self) -> "nn.Module":
        """The trained model with its last parameters; a reused run's is read from the store."""
        if self.trained is not None:
            return self.trained
        if self.run_id is None:
            raise BadRequest("the run is not tracked: its model was not kept")
        return load_model(self.run_id, uri=self.store_uri)

    store_uri: str | None = None


def train(
    config: DictConfig | Mapping[str, Any] | Sequence[str] = (),
    *,
    callbacks: "Sequence[Callback]" = (),
    progress: bool = False,
    parent_run_id: str | None = None,
    stop_above: float | None = None,
) -> TrainResult:
    """Train once, as a config says.

    ``config`` is a composed config, nested settings, or a list of ``key=value`` overrides. With
    ``stop_above`` the run may end once its maximal accuracy has reached that value. Under
    ``resume=auto`` no two processes compute the same run: the second waits for the first.
    ``callbacks`` may change training, and are a part of the run's identity.
    """
    settings = _composed(config)
    attempt = Attempt(settings, _identity(settings, callbacks), parent_run_id)
    return train_attempt(attempt, callbacks=callbacks, progress=progress, stop_above=stop_above)


def train_attempt(
    attempt: Attempt,
    *,
    callbacks: "Sequence[Callback]" = (),
    progress: bool = False,
    stop_above: float | None = None,
    judged_on: str = "test",
) -> TrainResult:
    """Train once; the identity is settled, and ``callbacks`` only look on.

    ``judged_on`` names the images whose accuracy ``stop_above`` bounds: ``test`` or ``val``.
    """
    with claimed(attempt):
        others = computed_otherwise(attempt) if attempt.config.resume == "auto" else []
        run = open_run(attempt)
        if run.finished:
            return _from_store(run)
        with _failures_recorded(run):
            enough = (stop_above, judged_on)
            result = _fit(attempt.config, run, list(callbacks), progress, enough)
    return replace(result, other_code=tuple(others))


def _composed(config: DictConfig | Mapping[str, Any] | Sequence[str]) -> DictConfig:
    if isinstance(config, DictConfig):
        return config
    if isinstance(config, Mapping):
        return compose(beneath=config)
    return compose(config)


def _identity(config: DictConfig, callbacks: "Sequence[Callback]") -> Identity:
    """A run's identity; going on from another run's checkpoint makes it a run of its own."""
    plain = to_plain(config)
    origin = of_callbacks(callbacks)
    given = checkpoint_given(config)
    if given is not None and config.resume_as == "new":
        identity_in(given)  # a file that is no checkpoint is an error now
        origin += digest_of(given)
    found = identify(plain, origin or None)
    if given is not None and config.resume_as == "same":
        refuse_other_run(given, found)
    return found


def _fit(
    config: DictConfig,
    run: TrackedRun,
    callbacks: "list[Callback]",
    progress: bool,
    stop_at: tuple[float | None, str],
) -> TrainResult:
    from lit_byz.execution.interrupt import StopAbove, StopOnSignal
    from lit_byz.execution.run_progress import RunProgress
    from lit_byz.tracking.logger import KeepHistory
    from lit_byz.training import (
        AccuracyTracker,
        AttackLogger,
        BestParameters,
        RoundCheckpoint,
        StrongestDamage,
        ThresholdLogger,
        Throughput,
    )

    begin = time.perf_counter()
    keep = kept_models(config, part_of_study=run.parent_run_id is not None)
    module = make_module(config)
    run.describe(config, module)
    accuracy, every = AccuracyTracker(), config.train.eval_every
    checkpoint = RoundCheckpoint(run.checkpoint, config.train.checkpoint_every, every)
    stop = StopOnSignal(checkpoint)
    enough = StopAbove(stop_at[0], accuracy, checkpoint, stop_at[1])
    own: list[Callback] = [ThresholdLogger(), AttackLogger(), accuracy]
    own += [Throughput(every, accuracy), KeepHistory(run.tracker)]
    own.append(KeepIdentity(run.code))
    if config.tracking.strongest_every:
        own.append(StrongestDamage(config.tracking.strongest_every))
    best = BestParameters() if keep in ("best", "both") else None
    own += [] if best is None else [best]
    own += [*users_callbacks(config), *callbacks]
    if progress:
        own.append(RunProgress(accuracy, label(config)))
    resumed = run.checkpoint if run.resuming else None
    with quiet_lightning(), several_devices(to_plain(config), resumed, stop_at) as strategy:
        trainer = make_trainer(config, [*own, checkpoint, enough, stop], run.tracker, strategy)
        with stop.listening():
            trainer.fit(module, ckpt_path=resumed, weights_only=True)
    status = "finished" if module.diverged_at is None else "diverged"
    if trainer.global_step < config.train.steps and module.diverged_at is None:
        status = "bounded" if enough.reached else "interrupted"
    complete = status in ("finished", "diverged")
    if complete and module.iterate is not None:
        reached = module.evaluate_at(module.iterate, config.data.test_batch_size)
        run.tracker.log_metrics({"test/random_iterate_accuracy": reached}, module.iterate_step)
    held_out = len(module.batches.held_out) > 0
    result = TrainResult(
        status=status,
        max_accuracy=accuracy.max_accuracy,
        step_of_max=accuracy.step_of_max,
        accuracy=accuracy.accuracy,
        history=run.tracker.history.pairs(),
        run_id=run.run_id,
        identity=run.identity,
        seconds=time.perf_counter() - begin,
        steps_done=trainer.global_step,
        gradients=module.gradient_method,
        resumed_at=stop.started_at if run.resuming else None,
        trained=module.model,
        store_uri=config.tracking.uri,
        max_val_accuracy=accuracy.max_val_accuracy if held_out else None,
        test_at_val_max=accuracy.test_at_val_max if held_out else None,
    )
    if complete:
        _finish(config, run, module, result)
        found = {"final": module.model.state_dict()}
        if best is not None and best.parameters:
            found["best"] = best.parameters
        save_models(run, {name: found[name] for name in found if keep in (name, "both")}, config)
    if status == "bounded":
        at_least = {"test/max_accuracy_at_least": result.max_accuracy}
        if result.max_val_accuracy is not None:
            at_least["val/max_accuracy_at_least"] = result.max_val_accuracy
        run.tracker.log_metrics(at_least, result.steps_done - 1)
    run.tag("lit_byz.status", status)
    run.close("FINISHED" if complete else "KILLED")
    return result


def _finish(config: DictConfig, run: TrackedRun, module: "RobustDSGD", result: TrainResult) -> None:
    """What is recorded once a run has come to its end."""
    from lit_byz.report.figures import run_figures

    run.tag("lit_byz.gradients", str(result.gradients))
    if run.store is not None:
        with TemporaryDirectory() as folder:
            for path in run_figures(result.history, label(config), Path(folder)):
                run.tracker.save_file(path, "figures")


def _from_store(run: TrackedRun) -> TrainResult:
    """The result of a run that had been finished before."""
    assert run.store is not None
    assert run.run_id is not None
    found = run.store.client.get_run(run.run_id)
    keys = found.data.metrics
    history = {key: run.store.history(run.run_id, key) for key in keys}
    return TrainResult(
        status=found.data.tags.get("lit_byz.status", "finished"),
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
    )


@contextlib.contextmanager
def _failures_recorded(run: TrackedRun) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        run.fail(error)
        raise
