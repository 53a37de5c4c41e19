"""Robust-DSGD as a LightningModule: all workers of a round, the attack and the server in one step.

>>> from lit_byz.attacks import SignFlip
>>> from lit_byz.data import DATASETS, PARTITIONS, WorkerBatches
>>> from lit_byz.models import MODELS
>>> from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator
>>> images = DATASETS["digits"]().load()
>>> parts = PARTITIONS["extreme"]()(images.train_labels, workers=10, seed=1)
>>> batches = WorkerBatches(images, parts, batch_size=10, seed=1)
>>> server = RobustAggregator(CWTM(f=1), clip=ARC(f=1), mix=NNM(f=1))
>>> module = RobustDSGD(MODELS["logreg"](), batches, server, SignFlip(), f=1)
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import lightning
import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from lit_byz._streams import Stream, numpy_generator, seed_torch
from lit_byz.attacks import Attack, Move, NoAttack, Scene, State
from lit_byz.data import WorkerBatches
from lit_byz.robust import Basis, Geometry, RobustAggregator, theory
from lit_byz.robust.vectors import NothingFinite, on_finite_rows
from lit_byz.training._flat import FlatParameters
from lit_byz.training._stochastic import WorkerLayers, replace_dropout
from lit_byz.training._task import Task
from lit_byz.training._workers import HonestWorkers

LOSSES = {"nll": nn.functional.nll_loss, "cross_entropy": nn.functional.cross_entropy}


@dataclass(frozen=True)
class TrainSettings:
    """How to train; the defaults are the paper's for MNIST."""

    steps: int = 1000
    lr: float = 0.1
    lr_milestones: list[int] = field(default_factory=list)
    lr_values: list[float] = field(default_factory=list)
    lr_decay: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    weight_decay_mode: Literal["server", "worker"] = "server"
    loss: Literal["auto", "nll", "cross_entropy"] = "auto"
    full_batch: bool = False
    local_steps: int = 1
    local_lr: float = 0.1
    gradients: Literal["auto", "vmap", "joined", "loop"] = "auto"
    output: Literal["last", "random_iterate"] = "last"

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0: a milestone m ends with its m-th step."""
        passed = sum(step >= milestone for milestone in self.lr_milestones)
        if passed and self.lr_values:
            return self.lr_values[min(passed, len(self.lr_values)) - 1]
        return self.lr * self.lr_decay**passed


@dataclass(frozen=True)
class Observation:
    """What one step looked like from the server's room.

    ``bound`` is the most damage that theory allows for these honest vectors, where it says so.
    """

    step: int
    loss: float
    threshold: float
    clipped_honest: int
    clipped_byzantine: int
    mean_norm: float
    max_norm: float
    average_norm: float
    output_norm: float
    damage: float
    bound: float | None
    factor: float | None
    at_edge: bool
    non_finite: int


class RobustDSGD(lightning.LightningModule):
    """The paper's Algorithm 3 (and 1, and plain DSGD) with manual optimisation.

    ``momentums`` holds the honest workers' vectors, and in its last row what the attackers write.
    All randomness comes from ``seed`` and the step's number, so a run can go on from any step.
    """

    momentums: Tensor

    def __init__(
        self,
        model: nn.Module,
        batches: WorkerBatches,
        server: RobustAggregator,
        attack: Attack | None = None,
        f: int = 0,
        settings: TrainSettings | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        replace_dropout(model)
        # Convolutions take images in this layout, and would bring the weights into it every time.
        self.model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.batches = batches
        self.server = server
        self.attack = NoAttack() if attack is None else attack
        self.f = f
        self.settings = TrainSettings() if settings is None else settings
        self.seed = seed
        server.check(batches.workers + f)
        self.attack.check(batches.workers)
        self.flat = FlatParameters(model)
        self.register_buffer("momentums", torch.zeros(batches.workers + 1, self.flat.size))
        self.attack_state: State = {}
        self.gradient_method: str | None = None
        self.observed: Observation | None = None
        self.sent: Move | None = None
        self.diverged_at: int | None = None
        self.iterate: Tensor | None = None
        draw = numpy_generator(seed, Stream.ITERATES)
        self.iterate_step = int(draw.integers(self.settings.steps))
        self._workers: HonestWorkers | None = None

    @property
    def honest(self) -> Tensor:
        """The honest workers' momentums (h, d)."""
        return self.momentums[:-1]

    @property
    def loss(self) -> Any:
        kind = self.settings.loss
        if kind == "auto":
            output = getattr(self.model, "output", "logits")
            kind = "nll" if output == "log_probabilities" else "cross_entropy"
        return LOSSES[kind]

    @property
    def classes(self) -> int:
        return int(self.batches.images.train_labels.max()) + 1

    def on_fit_start(self) -> None:
        self.batches.images.to(self.device)
        if self._workers is not None:
            return
        example, _ = self.batches.images.train_batch(torch.zeros(1, dtype=torch.long))
        layers = WorkerLayers(self.model, example.to(self.flat.parameters[0].dtype))
        settings = self.settings
        self._workers = HonestWorkers(
            task=Task(self.model, self.loss, self.flat, layers),
            batches=self.batches,
            seed=self.seed,
            momentum=settings.momentum,
            decay=settings.weight_decay if settings.weight_decay_mode == "worker" else 0.0,
            full_batch=settings.full_batch,
            local_steps=settings.local_steps,
            local_lr=settings.local_lr,
        )

    def train_dataloader(self) -> DataLoader[int]:
        """Numbers of rounds: a step finds its own data, from the step's number alone."""
        return DataLoader(range(self.settings.steps), batch_size=None)  # type: ignore[arg-type]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        decay = self.settings.weight_decay if self.settings.weight_decay_mode == "server" else 0.0
        return torch.optim.SGD(self.flat.parameters, lr=self.settings.lr, weight_decay=decay)

    def training_step(self, batch: Any, batch_idx: int) -> None:
        step = self.global_step
        workers = self._workers
        assert workers is not None
        self.model.train()
        seed_torch(self.seed, Stream.LAYERS, step)
        if self.gradient_method is None:
            self.gradient_method = workers.choose_method(self.settings.gradients)
        if step == self.iterate_step and self.settings.output == "random_iterate":
            self.iterate = self.flat.gather()
        flip = self.classes if self.attack.needs_flipped and self.f > 0 else None
        losses, flipped = workers.update(self.honest, step, self.gradient_method, flip)
        try:
            output = self._serve(step, float(losses.mean()), flipped)
        except NothingFinite:
            # The attackers have won: no honest vector is a number any more.
            self.diverged_at = step
            self.trainer.should_stop = True
            return
        self.flat.attach(output)
        optimizer = self.optimizers()
        assert isinstance(optimizer, LightningOptimizer)
        for group in optimizer.param_groups:
            group["lr"] = self.settings.lr_at(step)
        optimizer.step()

    @torch.no_grad()
    def _serve(self, step: int, loss: float, flipped: Tensor | None) -> Tensor:
        """The server's output R; what happened on the way goes to ``observed``."""
        honest, h = Basis(self.honest), self.batches.workers
        scene = Scene(honest, self.f, self.server, step, flipped, self.momentums)
        sent = None if self.f == 0 else self.attack.act(scene, self.attack_state)

        def work(basis: Basis) -> tuple[Tensor, Observation]:
            geometry = Geometry(basis) if sent is None else sent.received(scene, basis)
            prepared = self.server.prepare(geometry, step)
            centre = torch.zeros(basis.size, dtype=torch.float64)
            centre[:h] = 1 / h
            output, damage = self.server.output_and_damage(prepared, centre)
            clipped = geometry.norms > prepared.threshold
            return output, Observation(
                step=step,
                loss=loss,
                threshold=float(prepared.threshold),
                clipped_honest=int(clipped[:h].sum()),
                clipped_byzantine=int(clipped[h:].sum()),
                mean_norm=float(geometry.combination_norms(centre)),
                max_norm=float(geometry.norms[:h].max()),
                average_norm=float(geometry.norms[:h].mean()),
                output_norm=float(output.norm()),
                damage=damage,
                bound=None if sent is None else self._bound(geometry),
                factor=None if sent is None else sent.factor,
                at_edge=sent is not None and sent.at_edge,
                non_finite=0,
            )

        basis = honest if sent is None else sent.basis
        (output, observed), used = on_finite_rows(self.server, basis, work)
        bad = used.non_finite
        self.sent = sent
        if basis.rows.data_ptr() != self.momentums.data_ptr():
            # The attackers saw zeros for honest vectors that are not finite, and passed them on.
            bad = torch.cat([honest.sanitised().non_finite, bad[h:]])
        count = int(bad[:h].sum()) + self.f * int(bad[h:].sum())
        self.observed = Observation(**{**vars(observed), "non_finite": count})
        return output

    def _bound(self, received: Geometry) -> float | None:
        honest = Geometry(received.basis, received.matrix[: self.batches.workers])
        return theory.damage_bound(self.server, honest, self.f)

    @torch.no_grad()
    def evaluate(self, size: int = 250) -> tuple[float, float]:
        """Accuracy and mean loss on the test images, so many at once that they stay in cache."""
        self.model.eval()
        images = self.batches.images
        dtype = self.flat.parameters[0].dtype
        right, loss = 0, 0.0
        for x, y in images.test_batches(size):
            output = self.model(x.to(dtype))
            right += int((output.argmax(1) == y).sum())
            loss += float(self.loss(output, y)) * len(y)
        self.model.train()
        return right / images.test_size, loss / images.test_size

    def evaluate_at(self, parameters: Tensor, size: int = 250) -> float:
        """Accuracy with other parameters (d,); the model's own stay as they are."""
        own = self.flat.gather()
        self.flat.scatter(parameters)
        accuracy, _ = self.evaluate(size)
        self.flat.scatter(own)
        return accuracy

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["robust_dsgd"] = {
            "attack_state": dict(self.attack_state),
            "gradient_method": self.gradient_method,
            "iterate": self.iterate,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        kept = checkpoint["robust_dsgd"]
        self.attack_state = dict(kept["attack_state"])
        self.gradient_method = kept["gradient_method"]
        self.iterate = kept["iterate"]
