"""Robust-DSGD written as simply as possible: one worker after the other, float64, plain autograd.

Nothing here is shared with ``lit_byz.training`` but the batches and, where a model has dropout, the
masks, which no one could draw a second time. A worker is a copy of the model with its own layers.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from lit_byz.data import WorkerBatches

Array = np.ndarray
Attack = Callable[[Array, Array, int], Array]  # honest, mean flipped gradient, step
Server = Callable[[Array], Array]
Masks = Callable[[int], list[Tensor]]  # of a round: one per dropout layer, (h, b, ...)


@dataclass
class Naive:
    """Settings and state of one simulation; ``step`` makes one step and returns R."""

    model: nn.Module
    batches: WorkerBatches
    server: Server
    attack: Attack | None = None
    f: int = 0
    lr: Callable[[int], float] = lambda step: 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    decay_at: str = "server"
    full_batch: bool = False
    local_steps: int = 1
    local_lr: float = 0.1
    masks: Masks | None = None
    momentums: list[Array] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = copy.deepcopy(self.model).double()
        self.momentums = [np.zeros_like(self.theta()) for _ in range(self.batches.workers)]

    def theta(self) -> Array:
        return np.concatenate([p.detach().numpy().ravel() for p in self.model.parameters()])

    def set_theta(self, theta: Array) -> None:
        start = 0
        with torch.no_grad():
            for p in self.model.parameters():
                p.copy_(torch.from_numpy(theta[start : start + p.numel()]).view(p.shape))
                start += p.numel()

    def gradient(self, worker: int, number: int, theta: Array, flip: bool = False) -> Array:
        """The gradient on the batch of round ``number``; the copy itself is left in ``after``."""
        own = copy.deepcopy(self.model).train()
        start = 0
        with torch.no_grad():
            for p in own.parameters():
                p.copy_(torch.from_numpy(theta[start : start + p.numel()]).view(p.shape))
                start += p.numel()
        for norm in own.modules():
            if isinstance(norm, nn.BatchNorm2d):
                norm.reset_running_stats()
                norm.momentum = 1.0
        drops = [m for m in own.modules() if isinstance(m, nn.Dropout)]
        if self.masks is not None:
            for layer, mask in zip(drops, self.masks(number), strict=True):
                given = mask[worker].double()
                layer.forward = lambda x, m=given: x * m  # type: ignore[method-assign, misc]
        if self.full_batch:
            pieces = list(self.batches.worker(worker))
            x, y = (torch.cat(parts) for parts in zip(*pieces, strict=True))
        else:
            images, labels = self.batches.round(number)
            x, y = images[worker], labels[worker]
        labels = 9 - y if flip else y
        output = own(x.double())
        logs = torch.log_softmax(output, -1)  # changes nothing where they are such already
        loss = -logs[torch.arange(len(labels)), labels].mean()
        gradients = torch.autograd.grad(loss, list(own.parameters()), allow_unused=True)
        self.after = own
        self.loss = float(loss.detach())
        parts = zip(gradients, own.parameters(), strict=True)
        return np.concatenate(
            [np.zeros(p.numel()) if g is None else g.numpy().ravel() for g, p in parts]
        )

    def sent(self, worker: int, step: int) -> Array:
        """What enters a worker's momentum."""
        decay = self.weight_decay if self.decay_at == "worker" else 0.0
        theta = self.theta()
        if self.local_steps == 1:
            return self.gradient(worker, step, theta) + decay * theta
        local = theta.copy()
        for number in range(step * self.local_steps, (step + 1) * self.local_steps):
            local -= self.local_lr * (self.gradient(worker, number, local) + decay * local)
        return (theta - local) / (self.local_lr * self.local_steps)

    def step(self, step: int) -> Array:
        theta, copies, losses = self.theta(), [], []
        flipped = [
            self.gradient(worker, step * self.local_steps, theta, flip=True)
            for worker in range(self.batches.workers)
        ]
        for worker in range(self.batches.workers):
            g = self.sent(worker, step)
            m = self.momentums[worker]
            self.momentums[worker] = self.momentum * m + (1 - self.momentum) * g
            copies.append(self.after)
            losses.append(self.loss)
        self.losses.append(float(np.mean(losses)))
        honest = np.stack(self.momentums)
        received = honest
        if self.attack is not None:
            byzantine = self.attack(honest, np.mean(flipped, axis=0), step)
            received = np.concatenate([honest, np.tile(byzantine, (self.f, 1))])
        output = self.server(received)
        decay = self.weight_decay if self.decay_at == "server" else 0.0
        self.set_theta(theta - self.lr(step) * (output + decay * theta))
        self._follow(copies)
        return output

    @torch.no_grad()
    def _follow(self, copies: list[nn.Module]) -> None:
        stacks = zip(*[_norms(c) for c in copies], strict=True)
        for norm, theirs in zip(_norms(self.model), stacks, strict=True):
            for kind in ("running_mean", "running_var"):
                mean = torch.stack([getattr(t, kind) for t in theirs]).mean(0)
                getattr(norm, kind).mul_(0.9).add_(0.1 * mean)


def _norms(model: nn.Module) -> list[nn.BatchNorm2d]:
    return [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
