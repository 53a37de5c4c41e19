"""The baseline of the benchmark: what a researcher writes by hand for one paper, in plain torch.

Per-worker gradients by ``torch.func``, trimmed means by ``torch.sort``, neighbours by
``torch.cdist``, and for the searched attacks 20 factors, each tried on the whole server. Nothing
here is used by the library; tests compare it with the library's own step.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

FOE_FACTORS = torch.linspace(0.5, 10, 20)
ALIE_FACTORS = torch.cat([-torch.linspace(0.5, 5, 10).flip(0), torch.linspace(0.5, 5, 10)])


def arc(x: Tensor, f: int) -> Tensor:
    """Adaptive robust clipping of the rows (n, d)."""
    n, norms = len(x), x.norm(dim=1)
    threshold = norms.sort(descending=True).values[2 * f * (n - f) // n]
    return x * (threshold / norms).clamp(max=1).unsqueeze(1)


def nnm(x: Tensor, f: int) -> Tensor:
    """Each row becomes the mean of its n − f nearest rows."""
    n = len(x)
    nearest = torch.cdist(x, x).topk(n - f, largest=False).indices
    return x.new_zeros(n, n).scatter(1, nearest, 1 / (n - f)) @ x


def cwtm(x: Tensor, f: int) -> Tensor:
    """The coordinate-wise trimmed mean."""
    return x.sort(dim=0).values[f : len(x) - f].mean(0)


def geometric_median(x: Tensor, f: int) -> Tensor:
    """Three smoothed Weiszfeld iterations from the origin."""
    z = torch.zeros_like(x[0])
    for _ in range(3):
        weights = 1 / (x - z).norm(dim=1).clamp(min=0.1)
        z = weights @ x / weights.sum()
    return z


def multi_krum(x: Tensor, f: int) -> Tensor:
    """The mean of the n − f rows with the lowest scores."""
    n = len(x)
    scores = torch.cdist(x, x).square().sort(dim=1).values[:, 1 : n - f].sum(1)
    return x[scores.topk(n - f, largest=False).indices].mean(0)


RULES = {"cwtm": cwtm, "gm": geometric_median, "multi_krum": multi_krum}


class ByHand:
    """Robust-DSGD with ARC and NNM before a rule, under one of the paper's five attacks.

    ``tau`` is the factor of FOE and ALIE; without it the best of 20 is searched at every step.
    ``direction`` is Mimic's first one.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        *,
        f: int,
        attack: str,
        rule: str = "cwtm",
        lr: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        classes: int = 10,
        tau: float | None = None,
        direction: Tensor | None = None,
    ) -> None:
        self.model, self.loss, self.f, self.attack = model, loss, f, attack
        self.rule = RULES[rule]
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.classes, self.tau = classes, tau
        size = sum(p.numel() for p in model.parameters())
        self.direction = torch.randn(size) if direction is None else direction
        self.centre = torch.zeros(size)
        self.momentums: Tensor | None = None
        self.steps = 0
        # torch.func has no answer to running statistics: such models go worker by worker.
        self.batched = not list(model.buffers())

    def gradients(self, x: Tensor, y: Tensor) -> Tensor:
        """The workers' gradients (h, d) on their batches (h, b, …) and labels (h, b)."""
        parameters = {name: p.detach() for name, p in self.model.named_parameters()}
        if self.batched:

            def own_loss(values: dict[str, Tensor], images: Tensor, labels: Tensor) -> Tensor:
                return self.loss(functional_call(self.model, values, (images,)), labels)

            found = vmap(grad(own_loss), in_dims=(None, 0, 0))(parameters, x, y)
            return torch.cat([found[name].flatten(1) for name in parameters], dim=1)
        trained = list(self.model.parameters())
        rows = []
        for images, labels in zip(x, y, strict=True):
            found = torch.autograd.grad(self.loss(self.model(images), labels), trained)
            rows.append(torch.cat([g.flatten() for g in found]))
        return torch.stack(rows)

    def serve(self, x: Tensor) -> Tensor:
        """What the server makes of n vectors."""
        return self.rule(nnm(arc(x, self.f), self.f), self.f)

    def received(self, honest: Tensor, sent: Tensor) -> Tensor:
        return torch.cat([honest, sent.expand(self.f, -1)])

    def searched(self, honest: Tensor, vector: Callable[[Tensor], Tensor], taus: Tensor) -> Tensor:
        """The vector of the factor that does the most damage, or of the one that is given."""
        if self.tau is not None:
            return vector(torch.tensor(self.tau))
        mean = honest.mean(0)
        damages = [(self.serve(self.received(honest, vector(t))) - mean).norm() for t in taus]
        return vector(taus[torch.stack(damages).argmax()])

    def mimic(self, honest: Tensor) -> Tensor:
        """The vector of the worker farthest along the direction of greatest spread."""
        t = self.steps
        self.centre = (t * self.centre + honest.mean(0)) / (t + 1)
        apart = honest - self.centre
        spread = (apart @ self.direction) @ apart
        direction = (t * self.direction + spread / spread.norm()) / (t + 1)
        self.direction = direction / direction.norm()
        return honest[(honest @ self.direction).argmax()]

    def sent(self, honest: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """What every Byzantine worker sends."""
        mean = honest.mean(0)
        if self.attack == "sf":
            return -mean
        if self.attack == "lf":
            return self.gradients(x, self.classes - 1 - y).mean(0)
        if self.attack == "mimic":
            return self.mimic(honest)
        if self.attack == "foe":
            return self.searched(honest, lambda tau: (1 - tau) * mean, FOE_FACTORS)
        deviation = honest.std(0)
        return self.searched(honest, lambda tau: mean + tau * deviation, ALIE_FACTORS)

    def step(self, x: Tensor, y: Tensor) -> None:
        """One round: gradients, momentums, the attack, the server, the new parameters."""
        gradients = self.gradients(x, y)
        if self.momentums is None:
            self.momentums = torch.zeros_like(gradients)
        self.momentums = self.momentum * self.momentums + (1 - self.momentum) * gradients
        output = self.serve(self.received(self.momentums, self.sent(self.momentums, x, y)))
        with torch.no_grad():
            parts = output.split([p.numel() for p in self.model.parameters()])
            for p, part in zip(self.model.parameters(), parts, strict=True):
                p.sub_(part.view_as(p) + self.weight_decay * p, alpha=self.lr)
        self.steps += 1
