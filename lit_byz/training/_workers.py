"""What the honest workers do in a step: gradients, local steps, momentum."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lit_byz.data import WorkerBatches
from lit_byz.models import MODELS
from lit_byz.training._stochastic import Mean, over_rows
from lit_byz.training._task import FlippedLabels, Task
from lit_byz.training.gradient_methods import check_method, default_method
from lit_byz.training.gradients import METHODS

# The momentum of a coordinate whose gradient stays 0 (a dead unit's) fades by β a step, down to
# numbers so small that many processors take a hundred times as long for each. In every so many
# steps what has faded this far becomes 0.
FADING = 10
FADED = 1e-30


@dataclass(frozen=True)
class HonestWorkers:
    """All honest workers of a simulation, and how they make what they send.

    ``full_batch`` takes all points of a worker in every step. With ``local_steps`` L > 1 a worker
    takes L steps of ``local_lr`` η from the server's θ and sends (θ − θ_i)/(η L), which for L = 1
    is its gradient; a server learning rate of η L then averages models, as FedAvg does.
    ``decay`` is the factor of an ℓ2 term that the workers add to each gradient. ``batches`` may be
    those of some workers only, and ``mean`` then is what averages over all.
    """

    task: Task
    batches: WorkerBatches
    seed: int
    momentum: float
    decay: float = 0.0
    full_batch: bool = False
    local_steps: int = 1
    local_lr: float = 0.1
    mean: Mean = over_rows

    @property
    def simple(self) -> bool:
        """Whether a step is one gradient on one batch for each worker."""
        return not self.full_batch and self.local_steps == 1

    def choose_method(self, wanted: str) -> str:
        """The method of computing gradients: as wanted, or the model's default."""
        model = self.task.model
        example, _ = self.batches.images.train_batch(torch.zeros(1, dtype=torch.long))
        if wanted == "auto" or not self.simple:
            name, device = MODELS.name_of(type(model)), example.device.type
            return default_method(name, model, example, device=device, simple=self.simple)
        check_method(wanted, model, example)
        return wanted

    def update(
        self,
        rows: Tensor,
        step: int,
        method: str,
        flip: int | None = None,
        drawn: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """m_i ← β m_i + (1 − β) g_i in the rows (h, d); returns the losses (h,).

        With ``flip``, the number of classes, also the workers' mean gradient (d,) on the labels
        l' = (classes − 1) − l. ``drawn`` are the round's images and labels, if they are there.
        """
        rows.mul_(self.momentum)
        if step % FADING == 0:
            torch.hardshrink(rows, FADED, out=rows)
        share = 1 - self.momentum
        vector = None
        if flip is not None:
            vector = self.task.flat.parameters[0].new_zeros(self.task.flat.size)
        if self.simple:
            x, y = self._round(step) if drawn is None else (self._cast(drawn[0]), drawn[1])
            buffers = self._buffers(step, *y.shape)
            flipped = None
            if flip is not None and vector is not None:
                flipped = FlippedLabels(flip - 1 - y, vector)
            losses = METHODS[method](self.task, rows, share, x, y, buffers, flipped)
            self.task.layers.follow(buffers, self.mean)
        else:
            if flip is not None and vector is not None:
                self._add_flipped(vector, step, flip)
            update = self._update_locally if self.local_steps > 1 else self._update_fully
            losses = update(rows, step, share)
        if self.decay > 0 and self.local_steps == 1:
            rows.add_(self.task.flat.gather(), alpha=share * self.decay)
        return losses, vector

    def _add_flipped(self, vector: Tensor, step: int, classes: int) -> None:
        """Add the workers' mean gradient on flipped labels to ``vector`` (d,)."""
        self.task.flat.attach(vector)
        for worker in range(self.batches.workers):
            for share, x, y, buffers in self._portions(worker, step):
                loss = self.task.loss(self.task.output(buffers, x), classes - 1 - y)
                (share / self.batches.workers * loss).backward()

    def _update_fully(self, rows: Tensor, step: int, share: float) -> Tensor:
        losses = torch.zeros(len(rows), device=rows.device)
        statistics = []
        for worker, row in enumerate(rows):
            self.task.flat.attach(row)
            for portion, x, y, buffers in self._portions(worker, step):
                loss = self.task.loss(self.task.output(buffers, x), y)
                (share * portion * loss).backward()
                losses[worker] += portion * loss.detach()
            statistics.append(buffers)
        names = self.task.layers.statistics()
        stacked = {k: torch.stack([s[k] for s in statistics]) for k in names}
        self.task.layers.follow(stacked, self.mean)
        return losses

    def _update_locally(self, rows: Tensor, step: int, share: float) -> Tensor:
        flat = self.task.flat
        numbers = range(step * self.local_steps, (step + 1) * self.local_steps)
        rounds = [self._round(number) for number in numbers]
        stacks = [self._buffers(number, *rounds[0][1].shape) for number in numbers]
        losses = torch.zeros(len(rows), device=rows.device)
        for worker, row in enumerate(rows):
            own = [p.detach().clone().requires_grad_() for p in flat.parameters]
            for (x, y), stacked in zip(rounds, stacks, strict=True):
                buffers = {name: value[worker] for name, value in stacked.items()}
                output = self.task.output({**flat.named(own), **buffers}, x[worker])
                loss = self.task.loss(output, y[worker])
                gradients = torch.autograd.grad(
                    loss, own, allow_unused=True, materialize_grads=True
                )
                with torch.no_grad():
                    for parameter, gradient in zip(own, gradients, strict=True):
                        pull = gradient + self.decay * parameter
                        parameter.sub_(pull, alpha=self.local_lr)
                losses[worker] += loss.detach() / self.local_steps
            with torch.no_grad():
                scale = share / (self.local_lr * self.local_steps)
                for view, start, end in zip(flat.views(row), flat.parameters, own, strict=True):
                    view.add_((start - end).reshape(view.shape), alpha=scale)
        self.task.layers.follow(stacks[-1], self.mean)
        return losses

    def _portions(
        self, worker: int, step: int
    ) -> Iterator[tuple[float, Tensor, Tensor, dict[str, Tensor]]]:
        """A worker's points of a step in pieces: their share, images, labels, own buffers."""
        if not self.full_batch:
            x, y = self._round(step * self.local_steps)
            stacked = self._buffers(step * self.local_steps, *y.shape)
            yield 1.0, x[worker], y[worker], {k: v[worker] for k, v in stacked.items()}
            return
        total = len(self.batches.parts[worker])
        for piece, (images, y) in enumerate(self.batches.worker(worker, step)):
            x = self._cast(images)
            part = (self.batches.first + worker, piece)
            stacked = self.task.layers.buffers(self.seed, step, 1, len(y), part)
            yield len(y) / total, x, y, {k: v[0] for k, v in stacked.items()}

    def _round(self, step: int) -> tuple[Tensor, Tensor]:
        x, y = self.batches.round(step)
        return self._cast(x), y

    def _cast(self, x: Tensor) -> Tensor:
        return x.to(self.task.flat.parameters[0].dtype)

    def _buffers(self, step: int, workers: int, batch: int) -> dict[str, Tensor]:
        first = self.batches.first
        return self.task.layers.buffers(self.seed, step, workers, batch, first=first)
