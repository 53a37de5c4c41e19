"""Searches for the attack factor that does the most damage.

The damage is a saw-tooth in the factor: it grows until mixing drops the Byzantine vectors from
some worker's neighbours, falls, and grows again. A search that climbs from one side stays at the
first tooth; one that stops short of the best tooth makes every defence look good.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import torch


class Care(Enum):
    """How carefully the damage is looked at. Only SETTLE is exact; the others may be estimates."""

    LOCATE = auto()
    MEASURE = auto()
    SETTLE = auto()


# The damages (K,) of factors (K,).
Damage = Callable[[torch.Tensor, Care], torch.Tensor]

# Damages that differ by less than this share are level. A plateau is one peak, not many; and where
# the damage creeps towards a limit, the smallest factor that is level with the best is taken.
LEVEL = 1e-5
# Estimates of two damages have an error in common; what is left of it, as a share, is less.
UNSURE = 0.05
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
    """Factors in order and their damages, all looked at with the same care."""

    def __init__(self, damage: Damage, care: Care) -> None:
        self._damage, self._care = damage, care
        self.factors = self.damages = torch.empty(0, dtype=torch.float64)

    def look(self, factors: torch.Tensor) -> torch.Tensor:
        """The damages of more factors."""
        found = self._damage(factors, self._care)
        self.factors, order = torch.cat([self.factors, factors]).sort(stable=True)
        self.damages = torch.cat([self.damages, found])[order]
        return found

    def peaks(self, most: int) -> torch.Tensor:
        """The highest places that are higher than their left and no lower than their right."""
        level = LEVEL * self.damages.max()
        edge = torch.tensor([-math.inf], dtype=torch.float64)
        left = torch.cat([edge, self.damages[:-1]])
        right = torch.cat([self.damages[1:], edge])
        peaks = ((self.damages > left + level) & (self.damages >= right - level)).nonzero()[:, 0]
        return peaks[self.damages[peaks].topk(min(most, len(peaks))).indices]

    def around(self, peaks: torch.Tensor, between: int) -> torch.Tensor:
        """The peaks, their neighbours, and ``between`` factors on the way to each of these."""
        at = self.factors[peaks].unsqueeze(1)
        below, above = (end.unsqueeze(1) for end in self.neighbours(peaks))
        way = torch.linspace(0, 1, between + 2, dtype=torch.float64)
        return torch.cat([torch.lerp(at, below, way), torch.lerp(at, above, way)]).unique()

    def neighbours(self, peaks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        last = len(self.factors) - 1
        return self.factors[(peaks - 1).clamp(min=0)], self.factors[(peaks + 1).clamp(max=last)]

    def may_be_best(self, factors: torch.Tensor) -> torch.Tensor:
        """Which factors (K,) may do the most damage: all but those that have been seen to do less.

        An estimate may be wrong by as much as UNSURE.
        """
        places = torch.searchsorted(self.factors, factors).clamp(max=len(self.factors) - 1)
        less = self.damages[places] < (1 - UNSURE) * self.damages.max()
        return ~(less & (self.factors[places] == factors))

    def enough(self) -> torch.Tensor:
        """The smallest factor that is safely level with the best."""
        return self.factors[_least(self.factors, self.damages, LEVEL / 4)].unsqueeze(0)


def _survey(damage: Damage, low: float, high: float, points: int) -> tuple[_Map, _Map]:
    """A grid over [low, high], and a finer one around its highest peaks."""
    grid, fine = _Map(damage, Care.LOCATE), _Map(damage, Care.MEASURE)
    grid.look(spaced(low, high, points))
    fine.look(grid.around(grid.peaks(PEAKS), between=9))
    return grid, fine


def grid_search(damage: Damage, low: float, high: float, points: int) -> Found:
    """A grid over [low, high], refined around ever fewer of its peaks, then settled exactly."""
    grid, fine = _survey(damage, low, high, points)
    for most in (FINALISTS, 1):
        finer = fine.around(fine.peaks(most), between=4)
        fine.look(finer[~torch.isin(finer, fine.factors)])
    return _settle(grid, fine, damage, low, high)


def line_search(damage: Damage, low: float, high: float, points: int, evaluations: int) -> Found:
    """Line searches, side by side: steps are doubled while they improve, then contracted by 0.8.

    One starts at 0 with step 1. Alone it ends at the first tooth, or short of it: the others start
    at the highest peaks of a grid over [low, high], with half the way to their neighbours. Each
    looks at both sides in every one of its ``evaluations`` rounds.
    """
    grid, climbed = _survey(damage, low, high, points)
    peaks = climbed.peaks(FINALISTS)
    below, above = climbed.neighbours(peaks)
    best = torch.cat([torch.zeros(1).double().clamp(low, high), climbed.factors[peaks]])
    step = torch.cat([torch.ones(1).double(), (above - below) / 4])
    found = climbed.look(best)
    growing = torch.ones(len(best), dtype=torch.bool)
    for _ in range(evaluations):
        sides = torch.stack([best - step, best + step]).clamp(low, high)
        most, side = climbed.look(sides.reshape(-1)).reshape(2, -1).max(dim=0)
        better = most > found
        best = torch.where(better, sides.gather(0, side.unsqueeze(0))[0], best)
        found = torch.where(better, most, found)
        growing &= better & (side == 1)
        step = torch.where(growing, step * 2, step * 0.8)
    return _settle(grid, climbed, damage, low, high)


def published_search(damage: Damage, evaluations: int, start: float) -> Found:
    """The line search of the authors' library (ByzFL 0.0.11), evaluation by evaluation.

    From ``start`` to the right: the first step is 10, and every step that does strictly more
    damage is taken. Steps are doubled up to the first one that is not taken; from there on each is
    0.8 of the one before it, taken or not. It never looks to the left of the best place so far.
    Where the damage is level, rounding decides which steps are taken, there as here.
    """

    def look(way: float) -> float:
        return float(damage(torch.tensor([start + way], dtype=torch.float64), Care.SETTLE))

    # The way from ``start`` is summed up alone, so that it has the library's own rounding.
    best, step, growing = 0.0, 10.0, True
    most = look(best)
    for _ in range(evaluations - 1):
        found = look(best + step)
        better = found > most
        if better:
            best, most = best + step, found
        growing = growing and better
        step *= 2 if growing else 0.8
    return Found(start + best, most, at_edge=growing)


def coarse_search(
    damage: Damage, low: float, high: float, points: int, *, mirrored: bool = False
) -> Found:
    """The first of the most damaging among evenly spaced factors from low to high.

    One reading of "a grid search over a predefined range", as the paper describes its attacks.
    With ``mirrored`` half of the points are those factors and the others their negatives, which
    come first.
    """
    factors = torch.linspace(low, high, points // 2 if mirrored else points, dtype=torch.float64)
    if mirrored:
        factors = torch.cat([-factors.flip(0), factors])
    damages = damage(factors, Care.SETTLE)
    place = int(damages.argmax())
    factor = float(factors[place])
    at_edge = _at_edge(abs(factor) if mirrored else factor, low, high)
    return Found(factor, float(damages[place]), at_edge)


def _settle(grid: _Map, fine: _Map, damage: Damage, low: float, high: float) -> Found:
    """The best of the finalists, looked at exactly."""
    best = fine.factors[torch.cat([fine.peaks(FINALISTS), fine.damages.argmax(0, keepdim=True)])]
    finalists = torch.cat([best, grid.enough()]).unique()
    finalists = finalists[fine.may_be_best(finalists)]
    damages = damage(finalists, Care.SETTLE)
    place = _least(finalists, damages, LEVEL)
    factor = float(finalists[place])
    return Found(factor, float(damages[place]), _at_edge(factor, low, high))


def _at_edge(factor: float, low: float, high: float) -> bool:
    # No attack at all, 0, is an end of the range but not an edge to look behind.
    return factor >= high or factor <= low != 0


def _least(factors: torch.Tensor, damages: torch.Tensor, slack: float) -> int:
    """Where the smallest factor is, by size, whose damage is within ``slack`` of the greatest."""
    level = (damages >= (1 - slack) * damages.max()).nonzero()[:, 0]
    return int(level[factors[level].abs().argmin()])
