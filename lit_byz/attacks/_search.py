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
# Damages that differ by less than this share are level: a plateau is one peak, not many.
LEVEL = 1e-5
# How many peaks a search follows, and how many of them it looks at exactly in the end.
PEAKS = 4
FINALISTS = 3


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


class _Map:
    """The factors looked at so far, in order, and their estimated damages."""

    def __init__(self, damage: Damage, low: float, high: float) -> None:
        self._damage, self._low, self._high = damage, low, high
        self.factors = self.damages = torch.empty(0, dtype=torch.float64)

    def look(self, factors: torch.Tensor) -> torch.Tensor:
        """The estimated damages of more factors."""
        found = self._damage(factors, True)
        self.factors, order = torch.cat([self.factors, factors]).sort(stable=True)
        self.damages = torch.cat([self.damages, found])[order]
        return found

    def peaks(self, most: int) -> torch.Tensor:
        """Where the damage is higher than on the left and no lower than on the right."""
        level = LEVEL * self.damages.max()
        edge = torch.tensor([-math.inf], dtype=torch.float64)
        left = torch.cat([edge, self.damages[:-1]])
        right = torch.cat([self.damages[1:], edge])
        peaks = ((self.damages > left + level) & (self.damages >= right - level)).nonzero()[:, 0]
        return peaks[self.damages[peaks].topk(min(most, len(peaks))).indices]

    def settle(self) -> Found:
        """The best of the finalists, looked at exactly."""
        candidates = [self.peaks(FINALISTS), self.damages.argmax().unsqueeze(0)]
        creeping = (self.damages >= ENOUGH * self.damages.max()).nonzero()[:1, 0]
        finalists = self.factors[torch.cat([*candidates, creeping]).unique()].unique()
        damages = self._damage(finalists, False)
        place = int((damages >= ENOUGH * damages.max()).nonzero()[0])
        factor = float(finalists[place])
        # No attack at all, 0, is an end of the range but not an edge to look behind.
        at_edge = factor >= self._high or factor <= self._low != 0
        return Found(factor, float(damages[place]), at_edge)


def grid_search(damage: Damage, low: float, high: float, points: int) -> Found:
    """A grid over [low, high], refined twice around its highest peaks, then settled exactly."""
    seen = _Map(damage, low, high)
    seen.look(spaced(low, high, points))
    for _ in range(2):
        finer = torch.cat([_around(seen.factors, int(peak)) for peak in seen.peaks(PEAKS)]).unique()
        finer = finer[~torch.isin(finer, seen.factors)]
        if len(finer) == 0:
            break
        seen.look(finer)
    return seen.settle()


def _around(factors: torch.Tensor, peak: int) -> torch.Tensor:
    """Four factors on either side of a peak, up to its neighbours."""
    low = float(factors[max(peak - 1, 0)])
    high = float(factors[min(peak + 1, len(factors) - 1)])
    at = float(factors[peak])
    left = torch.linspace(low, at, 6, dtype=torch.float64)[1:-1]
    return torch.cat([left, torch.linspace(at, high, 6, dtype=torch.float64)[1:-1]])


def line_search(damage: Damage, low: float, high: float, evaluations: int, starts: int) -> Found:
    """Line searches, side by side: steps are doubled while they improve, then contracted by 0.8.

    One starts at 0 with step 1, as the published attack does. Alone it ends at the first tooth, or
    short of it: the others start at the highest peaks among ``starts`` factors in [low, high], half
    as far apart. Each looks at both sides in every one of its ``evaluations`` rounds.
    """
    seen = _Map(damage, low, high)
    seen.look(spaced(low, high, starts))
    peaks = seen.peaks(PEAKS)
    gap = seen.factors[(peaks + 1).clamp(max=starts - 1)] - seen.factors[(peaks - 1).clamp(min=0)]
    heights = seen.damages[peaks]
    origin = torch.zeros(1, dtype=torch.float64).clamp(low, high)
    best = torch.cat([origin, seen.factors[peaks]])
    step = torch.cat([torch.ones(1, dtype=torch.float64), gap / 4])
    found = torch.cat([seen.look(origin), heights])
    growing = torch.ones(len(best), dtype=torch.bool)
    for _ in range(evaluations):
        sides = torch.stack([best - step, best + step]).clamp(low, high)
        both = seen.look(sides.reshape(-1)).reshape(2, -1)
        most, side = both.max(dim=0)
        better = most > found
        best = torch.where(better, sides.gather(0, side.unsqueeze(0))[0], best)
        found = torch.where(better, most, found)
        growing &= better & (side == 1)
        step = torch.where(growing, step * 2, step * 0.8)
    return seen.settle()
