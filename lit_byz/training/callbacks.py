"""What is recorded, evaluated and saved while a run goes on."""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import lightning
import torch
from lightning.pytorch.callbacks import Callback, Checkpoint

from lit_byz.attacks import Scene, Span, State
from lit_byz.robust import ARC, theory
from lit_byz.training._evaluations import OnEvaluation
from lit_byz.training._judged import state_of
from lit_byz.training.module import RobustDSGD
from lit_byz.training.settings import Observation


def record(trainer: lightning.Trainer, metrics: dict[str, float], step: int) -> None:
    """Hand finite metrics to every logger."""
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    for logger in trainer.loggers:
        logger.log_metrics(finite, step)


class _StepLogger(Callback):
    """Records something about every step's observation, once per step."""

    def metrics(self, module: RobustDSGD, seen: Observation) -> dict[str, float]:
        raise TypeError(f"{type(self).__name__} does not say what it records")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        seen = pl_module.observed
        if seen is not None and seen.step == pl_module.global_step - 1:
            record(trainer, self.metrics(pl_module, seen), seen.step)


class ThresholdLogger(_StepLogger):
    """C_t, who was clipped, and the norms; an infinite threshold (no clipping) is not recorded."""

    def metrics(self, module: RobustDSGD, seen: Observation) -> dict[str, float]:
        # Of ARC under the old name too, for one release.
        old = {"arc/threshold": seen.threshold} if isinstance(module.server.clip, ARC) else {}
        return old | {
            "clip/threshold": seen.threshold,
            "server/clipped_honest": seen.clipped_honest,
            "server/clipped_byzantine": seen.clipped_byzantine,
            "server/output_norm": seen.output_norm,
            "server/non_finite": seen.non_finite,
            "honest/mean_norm": seen.mean_norm,
            "honest/max_norm": seen.max_norm,
            "honest/average_norm": seen.average_norm,
            "train/loss": seen.loss,
        }


class AttackLogger(_StepLogger):
    """The attack's factor, the damage ‖R − m̄‖ that it did, and the most that theory allows."""

    def metrics(self, module: RobustDSGD, seen: Observation) -> dict[str, float]:
        metrics = {"attack/damage": seen.damage}
        if seen.bound is not None:
            metrics["attack/bound"] = seen.bound
        if seen.factor is not None:
            metrics |= {"attack/factor": seen.factor, "attack/at_edge": float(seen.at_edge)}
        return metrics


class StrongestDamage(_StepLogger):
    """The strongest damage that could be found, every ``every`` steps, beside the attack's own.

    A :class:`~lit_byz.attacks.Span` looks at what the honest workers sent. It has its own memory
    and randomness, and training does not notice it.
    """

    def __init__(self, every: int = 10, attack: Span | None = None) -> None:
        self.every = every
        self.attack = Span() if attack is None else attack
        self.attack_state: State = {}

    def metrics(self, module: RobustDSGD, seen: Observation) -> dict[str, float]:
        if module.f == 0 or seen.step % self.every:
            return {}
        scene = Scene(module.received, module.f, module.server, seen.step)
        found = self.attack.act(scene, self.attack_state).damage
        assert found is not None
        return {"attack/strongest_damage": max(found, seen.damage)}

    def state_dict(self) -> dict[str, Any]:
        return dict(self.attack_state)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.attack_state = dict(state_dict)


class DissimilarityLogger(_StepLogger):
    """Heterogeneity of what the honest workers send: G, B and the breakdown point 1/(2 + B²).

    Fitted to the momentums seen so far, every ``every`` steps; with β = 0 these are gradients.
    """

    def __init__(self, every: int = 10) -> None:
        self.every = every
        self.pairs: list[tuple[float, float]] = []

    def metrics(self, module: RobustDSGD, seen: Observation) -> dict[str, float]:
        if seen.step % self.every:
            return {}
        gram = module.received.gram
        mean = float(gram.mean())
        self.pairs.append((mean, float(gram.diagonal().mean()) - mean))
        squares, spreads = torch.tensor(self.pairs, dtype=torch.float64).T
        found = theory.fit_dissimilarity(squares, spreads)
        return {
            "honest/G": found.G,
            "honest/B": found.B,
            "honest/breakdown_point": theory.breakdown_point(found.B),
        }

    def state_dict(self) -> dict[str, Any]:
        return {"pairs": torch.tensor(self.pairs, dtype=torch.float64)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.pairs = [(float(a), float(b)) for a, b in state_dict["pairs"].reshape(-1, 2)]


class AccuracyTracker(OnEvaluation):
    """The test accuracy that validation finds, its maximum, and the step of that.

    A step's accuracy is that of the parameters after it; steps are counted from 0 everywhere. Where
    images are held out, also the maximum on them, its step, and the test accuracy at that step.
    Before the first evaluation all accuracies are NaN.
    """

    def __init__(self) -> None:
        self.accuracy = self.max_accuracy = math.nan
        self.step_of_max = 0
        self.max_val_accuracy = self.test_at_val_max = math.nan
        self.step_of_val_max = 0
        self.seconds = 0.0
        self._begin = 0.0

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._begin = time.perf_counter()

    def look(self, trainer: Any, module: Any) -> None:
        self.seconds += time.perf_counter() - self._begin
        self.accuracy = float(trainer.callback_metrics["test/accuracy"])
        if not self.accuracy <= self.max_accuracy:
            self.max_accuracy, self.step_of_max = self.accuracy, self.evaluated - 1
        validated = float(trainer.callback_metrics.get("val/accuracy", math.nan))
        if not (math.isnan(validated) or validated <= self.max_val_accuracy):
            self.max_val_accuracy, self.test_at_val_max = validated, self.accuracy
            self.step_of_val_max = self.evaluated - 1

    def max_on(self, images: str) -> float:
        """The maximal accuracy on the images ``test`` or ``val``."""
        return self.max_accuracy if images == "test" else self.max_val_accuracy

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if pl_module.global_step == trainer.max_steps or pl_module.diverged_at is not None:
            best = {"test/max_accuracy": self.max_accuracy, "step_of_max": float(self.step_of_max)}
            if len(pl_module.batches.held_out):
                best["val/max_accuracy"] = self.max_val_accuracy
                best["val/step_of_max"] = float(self.step_of_val_max)
                best["test/accuracy_at_val_max"] = self.test_at_val_max
            record(trainer, best, max(pl_module.global_step - 1, 0))

    def state_dict(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "max_accuracy": self.max_accuracy,
            "step_of_max": self.step_of_max,
            "max_val_accuracy": self.max_val_accuracy,
            "step_of_val_max": self.step_of_val_max,
            "test_at_val_max": self.test_at_val_max,
            "seconds": self.seconds,
            "evaluated": self.evaluated,
        }


class BestParameters(OnEvaluation):
    """Keeps a copy of the model's parameters whenever validation finds a higher accuracy.

    That is the accuracy on the images held out, or on the test images where there are none.
    """

    def __init__(self) -> None:
        self.accuracy = -1.0
        self.parameters: dict[str, torch.Tensor] = {}

    def look(self, trainer: Any, module: Any) -> None:
        found = trainer.callback_metrics
        accuracy = float(found.get("val/accuracy", found["test/accuracy"]))
        if accuracy > self.accuracy:
            self.accuracy = accuracy
            self.parameters = state_of(module.model)

    def state_dict(self) -> dict[str, Any]:
        names = ("accuracy", "parameters", "evaluated")
        return {name: getattr(self, name) for name in names}


class Throughput(Callback):
    """Steps and honest examples per second, every ``every`` steps, evaluations left out."""

    def __init__(self, every: int, tracker: AccuracyTracker) -> None:
        self.every = every
        self.tracker = tracker
        self._since = (0, 0.0, 0.0)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._since = (pl_module.global_step, time.perf_counter(), self.tracker.seconds)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        step, begin, evaluating = self._since
        done = pl_module.global_step
        if done % self.every and done != trainer.max_steps:
            return
        seconds = time.perf_counter() - begin - (self.tracker.seconds - evaluating)
        if done > step and seconds > 0:
            rate = (done - step) / seconds
            batches = pl_module.batches
            examples = rate * batches.workers * batches.batch_size
            speeds = {"speed/steps_per_second": rate, "speed/examples_per_second": examples}
            record(trainer, speeds, done - 1)
        self._since = (done, time.perf_counter(), self.tracker.seconds)


class AfterRound(Callback):
    """Does something after every step, once its parameters are evaluated if they are.

    ``eval_every`` is the trainer's ``val_check_interval``; the last step is always evaluated.
    """

    to_write: ClassVar[tuple[str, ...]] = ("after_round", "on_train_batch_end")
    example: ClassVar[str] = (
        "from lit_byz.training import AfterRound\nclass MyCallback(AfterRound):\n"
        "    def after_round(self, trainer, module): print(module.global_step)"
    )

    def __init__(self, eval_every: int) -> None:
        self.eval_every = eval_every

    def after_round(self, trainer: lightning.Trainer, module: RobustDSGD) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it does")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if not (pl_module.global_step % self.eval_every == 0 or trainer.should_stop):
            self.after_round(trainer, pl_module)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self.after_round(trainer, pl_module)


class RoundCheckpoint(AfterRound, Checkpoint):
    """Saves the whole run every ``every`` steps (0: never by itself), atomically.

    The one before the last stays beside it as ``previous.ckpt``. ``saved`` hears of each, with the
    number of steps done.
    """

    def __init__(
        self, path: Path, every: int, eval_every: int, saved: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(eval_every)
        self.path = path
        self.every = every
        self.saved = saved

    def after_round(self, trainer: lightning.Trainer, module: RobustDSGD) -> None:
        done = module.global_step
        if self.every and done % self.every == 0 and done < trainer.max_steps:
            self.save(trainer)

    def save(self, trainer: lightning.Trainer) -> None:
        """Write the checkpoint, then let the loggers write what happened before it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".part")
        trainer.save_checkpoint(unfinished)  # by all processes of a run, written by the first
        if trainer.is_global_zero:
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            if self.path.exists():
                self.path.replace(self.path.with_name("previous.ckpt"))
            unfinished.replace(self.path)
        for logger in trainer.loggers:
            logger.save()
        if self.saved is not None and trainer.is_global_zero:
            self.saved(trainer.global_step)

    def stop(self, trainer: lightning.Trainer) -> None:
        """Save and end the run here, unevaluated, as an uninterrupted run would be at this step."""
        self.save(trainer)
        trainer.limit_val_batches = 0
        trainer.should_stop = True
