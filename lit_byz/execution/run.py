"""One experiment: from a config to a tracked, resumable run and its result."""

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from lit_byz._quiet import for_a_while
from lit_byz.config.as_typed import as_typed
from lit_byz.config.compose import compose, to_plain
from lit_byz.config.identity import Identity, identify, of_callbacks, refuse_changed
from lit_byz.config.own_data import forget_data
from lit_byz.execution import checkpoints
from lit_byz.execution.alone import by_itself
from lit_byz.execution.assemble import (
    make_module,
    make_trainer,
    observers,
    quiet_lightning,
    users_callbacks,
)
from lit_byz.execution.checkpoints import (
    OwnEvaluations,
    digest_of,
    identity_in,
    refuse_other_run,
)
from lit_byz.execution.devices import several_devices
from lit_byz.execution.kept import kept_models, save_models
from lit_byz.execution.result import TrainResult, from_store
from lit_byz.execution.signals import pass_on
from lit_byz.tracking.attempts import claimed, computed_otherwise, hurried_alone, unhurried
from lit_byz.tracking.claims import ClaimLost
from lit_byz.tracking.evaluations import RANDOM_ITERATE, means
from lit_byz.tracking.names import label
from lit_byz.tracking.new_run import Attempt
from lit_byz.tracking.patience import StoreGone
from lit_byz.tracking.runs import TrackedRun, open_run
from lit_byz.tracking.shelf import checkpoint_given
from lit_byz.tracking.store import STATUS

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
    from torch import Tensor

    from lit_byz.execution.interrupt import StopOnSignal
    from lit_byz.training import RobustDSGD


def train(
    config: DictConfig | Mapping[str, Any] | Iterable[str] = (),
    *,
    callbacks: "Sequence[Callback]" = (),
    progress: bool = False,
    parent_run_id: str | None = None,
    stop_above: float | None = None,
) -> TrainResult:
    """Train once, as a config says.

    ``config`` is a composed config, a list of ``key=value`` overrides, or a mapping of settings,
    ``{"train": {"steps": 5}}`` or ``{"train.steps": 5}``. With ``stop_above`` the run may end once
    its maximal accuracy has reached that value. Under ``resume=auto``, and without
    tracking, no two processes compute the same run at once: the second waits for the first.
    ``callbacks`` may change training, and are a part of the run's identity. Calls from several
    threads come one after another.
    """
    with for_a_while(), by_itself():
        settings = _composed(config)
        attempt = Attempt(settings, _identity(settings, callbacks), parent_run_id)
        unhurried(attempt)
        return train_attempt(attempt, callbacks=callbacks, progress=progress, stop_above=stop_above)


def train_attempt(
    attempt: Attempt,
    *,
    callbacks: "Sequence[Callback]" = (),
    progress: bool = False,
    stop_above: float | None = None,
    judged_on: str = "test",
    wait: float = math.inf,
) -> TrainResult:
    """Train once; the identity is settled, and ``callbacks`` only look on.

    ``judged_on`` names the images whose accuracy ``stop_above`` bounds: ``test`` or ``val``. A run
    that another process computes is waited for, at most so many seconds; then ``Elsewhere`` is
    raised.
    """
    lost: TrackedRun | None = None
    while True:
        with (
            hurried_alone(attempt),
            claimed(attempt, wait if lost is None else math.inf) as claim,
            contextlib.suppress(ClaimLost),
        ):
            others = computed_otherwise(attempt) if attempt.config.resume == "auto" else []
            run = open_run(attempt, claim)
            if run.finished:
                if lost is not None:
                    lost.throw_away()
                return from_store(run)
            lost = run
            with _failures_recorded(run), by_itself():
                enough = (stop_above, judged_on)
                result, unheard = _fit(attempt.config, run, list(callbacks), progress, enough)
            pass_on(unheard)
            return replace(result, other_code=tuple(others))
        # Another process has taken it over; its result is ours, too.


def _composed(config: DictConfig | Mapping[str, Any] | Iterable[str]) -> DictConfig:
    return config if isinstance(config, DictConfig) else compose(as_typed(config))


def _identity(config: DictConfig, callbacks: "Sequence[Callback]") -> Identity:
    """A run's identity; going on from another run's checkpoint makes it a run of its own."""
    forget_data()  # a user's own may have changed since the last run
    plain = to_plain(config)
    refuse_changed([plain], callbacks)
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
) -> tuple[TrainResult, int | None]:
    """What the run came to, and the signal that came when there was no step left to end it at."""
    with contextlib.ExitStack() as to_the_end:
        result, stop = _fitted(config, run, callbacks, progress, stop_at, to_the_end)
    return result, stop.requested if result.status != "interrupted" else None


def _fitted(
    config: DictConfig,
    run: TrackedRun,
    callbacks: "list[Callback]",
    progress: bool,
    stop_at: tuple[float | None, str],
    to_the_end: contextlib.ExitStack,
) -> "tuple[TrainResult, StopOnSignal]":
    from lit_byz.execution.interrupt import StopAbove, StopOnSignal, StopWithoutStore
    from lit_byz.execution.run_progress import RunProgress
    from lit_byz.training import AccuracyTracker, BestParameters, RoundCheckpoint

    begin = time.perf_counter()
    keep = kept_models(config, part_of_study=run.parent_run_id is not None)
    module = make_module(config)
    run.describe(config, module)
    accuracy, every = AccuracyTracker(), config.train.eval_every
    saved = run.put_aside
    checkpoint = RoundCheckpoint(run.checkpoint, config.train.checkpoint_every, every, saved)
    stop = StopOnSignal(checkpoint, run.patience)
    without_store = StopWithoutStore(run.tracker, checkpoint)
    enough = StopAbove(stop_at[0], accuracy, checkpoint, stop_at[1])
    best = BestParameters() if keep in ("best", "both") else None
    own: list[Callback] = [OwnEvaluations()] if config.resume_as == "new" else []
    own += [*observers(config, run, accuracy), *([] if best is None else [best])]
    own += [*users_callbacks(config), *callbacks]
    if progress:
        own.append(RunProgress(accuracy, label(config), every))
    resumed = checkpoints.tell_other_torch(run) if run.resuming else None
    with quiet_lightning(), several_devices(to_plain(config), resumed, stop_at) as strategy:
        trainer = make_trainer(
            config, [*own, checkpoint, enough, stop, without_store], run.tracker, strategy
        )
        to_the_end.enter_context(stop.listening())  # a run that is complete is closed as well
        with stop.exits():
            trainer.fit(module, ckpt_path=resumed, weights_only=True)
            accuracy.on_train_end(trainer, module)  # which a run saved at its end has not heard
    if without_store.stopped:
        raise run.gone()
    status = "finished" if module.diverged_at is None else "diverged"
    if trainer.global_step < config.train.steps and module.diverged_at is None:
        status = "bounded" if enough.reached else "interrupted"
    complete = status in ("finished", "diverged")
    if complete:
        _record_ends(config, run, module, status)
    iterate = module.iterate if complete else None
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
    found = {"final": module.model.state_dict() if iterate is None else iterate}
    if best is not None and best.parameters:
        found["best"] = best.parameters
    try:
        _close(config, run, module, result, {k: found[k] for k in found if keep in (k, "both")})
    except StoreGone:
        if complete and trainer.world_size == 1:  # it was there at the last step
            with quiet_lightning():
                checkpoint.save(trainer)
        raise
    if iterate is not None:  # after what may save the run, which goes on from its last parameters
        module.model.load_state_dict(iterate)
    module.model.eval()
    return result, stop


def _record_ends(config: DictConfig, run: TrackedRun, module: "RobustDSGD", status: str) -> None:
    """The accuracy of θ̂, if the run came to it, and the means of the last evaluations.

    Each stands where the accuracy of the same parameters would.
    """
    if module.iterate is not None:
        reached = module.evaluate_at(module.iterate, config.data.test_batch_size)
        run.tracker.log_metrics({RANDOM_ITERATE: reached}, max(module.iterate_step - 1, 0))
    ends = means(run.tracker.history.pairs(), status)
    run.tracker.log_metrics(ends, max(module.global_step - 1, 0))


def _close(
    config: DictConfig,
    run: TrackedRun,
    module: "RobustDSGD",
    result: TrainResult,
    models: "Mapping[str, Mapping[str, Tensor]]",
) -> None:
    """Record what a run came to."""
    complete = result.status in ("finished", "diverged")
    if complete:
        _finish(config, run, module, result)
        save_models(run, models, config)
    if result.status == "bounded":
        at_least = {"test/max_accuracy_at_least": result.max_accuracy}
        if result.max_val_accuracy is not None:
            at_least["val/max_accuracy_at_least"] = result.max_val_accuracy
        run.tracker.log_metrics(at_least, result.steps_done - 1)
    run.tag(STATUS, result.status)
    run.close("FINISHED" if complete else "KILLED")


def _finish(config: DictConfig, run: TrackedRun, module: "RobustDSGD", result: TrainResult) -> None:
    """What is recorded once a run has come to its end."""
    from lit_byz.report.figures import run_figures
    from lit_byz.report.words import run_words

    run.tag("lit_byz.gradients", str(result.gradients))
    if run.store is not None and config.tracking.figures:
        with TemporaryDirectory() as folder:
            title, chance = run_words(to_plain(config)), 1 / module.classes
            for path in run_figures(result.history, title, Path(folder), chance):
                run.tracker.save_file(path, "figures")


@contextlib.contextmanager
def _failures_recorded(run: TrackedRun) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        run.fail(error)
        raise
