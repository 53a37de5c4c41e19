"""A search that needs values only: several evolution strategies side by side.

Damages have cliffs, where mixing or selection drops a vector, and the highest points lie at their
edges, where several meet: gradients say nothing there. A strategy that learns the shape of its
neighbourhood follows such an edge. Each island is a (μ/μ, λ)-CMA-ES with the usual constants
(Hansen, *The CMA Evolution Strategy: A Tutorial*, 2016), written for a batch of islands.
"""

import math
from collections.abc import Callable

import torch

# The values (K,) of points (K, N); minus infinity for one that must not be taken.
Score = Callable[[torch.Tensor], torch.Tensor]

ISLANDS = 6
# After this share of the evaluations the better half of the islands goes on alone.
HALF_GO_ON = 0.3
# How far the first children fall from their parent, in units of the scale there.
REACH = 0.2
# How far apart the islands begin, in units of the scale there.
APART = 0.6


def evolve(
    score: Score,
    starts: torch.Tensor,
    values: torch.Tensor,
    scales: torch.Tensor,
    limit: Callable[[torch.Tensor], torch.Tensor],
    evaluations: int,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best points (islands, N) that were seen from ``starts`` (K, N), and their values.

    The islands begin at the best starts that lie apart, as measured by what a large step is there:
    ``scales`` (K,). ``limit`` brings points (..., N) back into the region to search.
    ``evaluations`` is how many points may be looked at.
    """
    first = _apart(starts, values, APART * scales)
    islands = _Islands(starts[first], values[first], REACH * scales[first], generator)
    left = evaluations
    settled: list[tuple[torch.Tensor, torch.Tensor]] = []
    while left >= islands.count * islands.children:
        if not settled and left < (1 - HALF_GO_ON) * evaluations:
            settled.append(islands.keep_best(max(1, islands.count // 2)))
        left -= islands.count * islands.children
        islands.advance(score, limit)
    settled.append((islands.best, islands.best_values))
    points, found = (torch.cat(parts) for parts in zip(*settled, strict=True))
    order = found.argsort(descending=True, stable=True)
    return points[order], found[order]


def _apart(points: torch.Tensor, values: torch.Tensor, gaps: torch.Tensor) -> list[int]:
    """The best places, none nearer to a better one than the gap of either."""
    chosen: list[int] = []
    for place in values.argsort(descending=True, stable=True).tolist():
        distances = (points[chosen] - points[place]).norm(dim=1)
        if bool((distances > gaps[chosen].clamp(min=gaps[place])).all()):
            chosen.append(place)
        if len(chosen) == ISLANDS:
            break
    return chosen


class _Islands:
    """One strategy per row: its mean, its step, the shape of its steps, and the best it has seen.

    ``shape`` is the covariance C, ``drift`` and ``path`` are the evolution paths p_c and p_σ.
    """

    def __init__(
        self,
        at: torch.Tensor,
        values: torch.Tensor,
        reach: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        self.generator = generator
        self.mean, self.best, self.best_values = at.clone(), at.clone(), values.clone()
        count, size = at.shape
        self.shape = torch.eye(size, dtype=torch.float64).repeat(count, 1, 1)
        self.step = reach.unsqueeze(1) / math.sqrt(size)
        self.drift, self.path = torch.zeros_like(at), torch.zeros_like(at)
        self.age = 0
        self._set_constants(size)

    def _set_constants(self, size: int) -> None:
        # Three times the usual number: a large batch costs little more than a small one.
        self.children = 3 * (4 + int(3 * math.log(size)))
        parents = self.children // 2
        ranks = torch.arange(1, parents + 1, dtype=torch.float64)
        self.weights = math.log(parents + 0.5) - ranks.log()
        self.weights /= self.weights.sum()
        self.mass = float(1 / self.weights.square().sum())
        mass = self.mass
        self.rate_drift = (4 + mass / size) / (size + 4 + 2 * mass / size)
        self.rate_path = (mass + 2) / (size + mass + 5)
        self.rate_one = 2 / ((size + 1.3) ** 2 + mass)
        self.rate_many = min(
            1 - self.rate_one, 2 * (mass - 2 + 1 / mass) / ((size + 2) ** 2 + mass)
        )
        surplus = max(0.0, math.sqrt((mass - 1) / (size + 1)) - 1)
        self.damping = 1 + self.rate_path + 2 * surplus
        self.usual = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))

    @property
    def count(self) -> int:
        return len(self.mean)

    def keep_best(self, most: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Give up all but the best islands; returns the best points of the others."""
        order = self.best_values.argsort(descending=True, stable=True)
        kept, given_up = order[:most], order[most:]
        others = self.best[given_up], self.best_values[given_up]
        for name in ("mean", "best", "best_values", "shape", "step", "drift", "path"):
            setattr(self, name, getattr(self, name)[kept])
        return others

    def advance(self, score: Score, limit: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """One generation."""
        squares, axes = torch.linalg.eigh(self.shape)
        lengths = squares.clamp(min=1e-18).sqrt().unsqueeze(1)
        draw = torch.randn(
            self.count,
            self.children,
            self.mean.shape[1],
            generator=self.generator,
            dtype=torch.float64,
        )
        moves = (draw * lengths) @ axes.mT
        points = limit(self.mean.unsqueeze(1) + self.step.unsqueeze(1) * moves)
        values = score(points.flatten(0, 1)).reshape(self.count, self.children)
        values, order = values.sort(dim=1, descending=True, stable=True)
        chosen = order[:, : len(self.weights), None].expand(-1, -1, moves.shape[2])
        moves, points = moves.gather(1, chosen), points.gather(1, chosen)
        better = values[:, 0] > self.best_values
        self.best = torch.where(better.unsqueeze(1), points[:, 0], self.best)
        self.best_values = torch.where(better, values[:, 0], self.best_values)
        move = self.weights @ moves
        self.mean = limit((self.mean + self.step * move).unsqueeze(1)).squeeze(1)
        self._learn(move, moves, axes, lengths.squeeze(1))

    def _learn(
        self, move: torch.Tensor, moves: torch.Tensor, axes: torch.Tensor, lengths: torch.Tensor
    ) -> None:
        self.age += 1
        within = (axes.mT @ move.unsqueeze(2)).squeeze(2) / lengths
        whitened = (axes @ within.unsqueeze(2)).squeeze(2)
        keep = 1 - self.rate_path
        self.path = keep * self.path + math.sqrt((1 - keep**2) * self.mass) * whitened
        length = self.path.norm(dim=1, keepdim=True)
        expected = math.sqrt(1 - keep ** (2 * self.age)) * self.usual
        steady = (length < (1.4 + 2 / (move.shape[1] + 1)) * expected).double()
        keep = 1 - self.rate_drift
        self.drift = keep * self.drift + steady * math.sqrt((1 - keep**2) * self.mass) * move
        many = (moves.mT * self.weights) @ moves
        one = self.drift.unsqueeze(2) * self.drift.unsqueeze(1)
        rest = 1 - self.rate_one - self.rate_many
        self.shape = rest * self.shape + self.rate_one * one + self.rate_many * many
        growth = (self.rate_path / self.damping) * (length / self.usual - 1)
        self.step = self.step * growth.clamp(max=1).exp()
