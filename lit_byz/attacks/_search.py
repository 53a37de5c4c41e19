"""Searches for the attack factor that does the most damage.

The damage is a saw-tooth in the factor: it grows until mixing drops the Byzantine vectors from
some worker's neighbours, falls, and grows again. A search that climbs from one side stays at the
first tooth; one that stops short of the best tooth makes every defence look good.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

# The damages (K,) of factors (K,); the second argument allows an estimate that is much cheaper.
Damage = Callable[[torch.Tensor, bool], torch.Tensor]

# The smallest factor that does this share of the greatest damage is taken: where the damage only
# creeps towards a limit, the factor must not run away with it.
ENOUGH = 0.999


@dataclass(frozen=True)
class Found:
    """The chosen factor, its damage, and whether it lies at the edge of what was searched."""

    factor: float
    damage: float
    at_edge: bool


def spaced(low: float, high: float, points: int) -> torch.Tensor:
    """Factors from low to high: evenly spaced near 0, by equal ratios far from it."""
    knee = 0.25

    def fold(value: float) -> float:
        return math.copysign(math.log1p(abs(value) / knee), value)

    places = torch.linspace(fold(low), fold(high), points, dtype=torch.float64)
    factors = places.sign() * torch.expm1(places.abs()) * knee
    factors[0], factors[-1] = low, high
    return factors


def grid_search(damage: Damage, low: float, high: float, points: int) -> Found:
    """A grid over [low, high], refined twice around its best points, then settled exactly."""
    factors = spaced(low, high, points)
    damages = damage(factors, True)
    for _ in range(2):
        peaks = damages.topk(min(3, len(factors))).indices
        finer = torch.cat([_between(factors, int(peak)) for peak in peaks]).unique()
        finer = finer[~torch.isin(finer, factors)]
        if len(finer) == 0:
            break
        factors, order = torch.cat([factors, finer]).sort()
        damages = torch.cat([damages, damage(finer, True)])[order]
    finalists = factors[damages.topk(min(4, len(factors))).indices]
    creeping = factors[damages >= ENOUGH * damages.max()][:1]
    finalists = torch.cat([finalists, creeping]).unique()
    return _settle(finalists, damage(finalists, False), low, high)


def _between(factors: torch.Tensor, peak: int) -> torch.Tensor:
    """Four factors on either side of a peak, up to its neighbours."""
    low = float(factors[max(peak - 1, 0)])
    high = float(factors[min(peak + 1, len(factors) - 1)])
    at = float(factors[peak])
    left = torch.linspace(low, at, 6, dtype=torch.float64)[1:-1]
    return torch.cat([left, torch.linspace(at, high, 6, dtype=torch.float64)[1:-1]])


def line_search(damage: Damage, evaluations: int, starts: int) -> Found:
    """Line searches, side by side: steps are doubled while they improve, then contracted by 0.8.

    One starts at 0 with step 1, as the published attack does. Alone it ends at the first tooth, or
    short of it: the others start at ``starts`` places between 1/8 and 1024, by equal ratios. Each
    looks at both sides in every one of its ``evaluations`` rounds.
    """
    best = torch.cat([torch.zeros(1), torch.logspace(-3, 10, starts, base=2.0)]).double()
    step = best * (2.0 ** (13 / starts) - 1)
    step[0] = 1.0
    found = damage(best, True)
    growing = torch.ones(len(best), dtype=torch.bool)
    for _ in range(evaluations):
        sides = torch.stack([(best - step).clamp(min=0), best + step])
        both = damage(sides.reshape(-1), True).reshape(2, -1)
        most, side = both.max(dim=0)
        better = most > found
        best = torch.where(better, sides.gather(0, side.unsqueeze(0))[0], best)
        found = torch.where(better, most, found)
        growing &= better & (side == 1)
        step = torch.where(growing, step * 2, step * 0.8)
    finalists = best[found.topk(min(4, len(best))).indices].unique()
    return _settle(finalists, damage(finalists, False), 0.0, math.inf)


def _settle(factors: torch.Tensor, damages: torch.Tensor, low: float, high: float) -> Found:
    most = float(damages.max())
    place = int((damages >= ENOUGH * most).nonzero()[0])
    factor = float(factors[place])
    return Found(factor, float(damages[place]), factor >= high or (factor <= low < 0))
