"""Where the search of the whole span begins: at what is published, and along lines from it."""

import math
from itertools import combinations

import torch

from lit_byz.attacks._min_max import MinMax, MinSum
from lit_byz.attacks._view import View

# How far the lines go from the honest mean, in lengths of their direction.
NEAREST, FARTHEST = 0.03, 100.0
# Just below: clipping, neighbourhoods and selections all compare with the honest vectors.
BELOW = 1 - 1e-3
# Sets of so many honest vectors at most, among so many that are farthest from the mean, are worked
# against, at these distances from the mean in units of their own.
MOST_AGAINST = 3
FARTHEST_HONEST = 8
AGAINST = (0.4, 0.7, 1.0, 1.5)
# Rescalings about the honest mean.
STRETCHES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.5, 2.0)


def landmarks(view: View) -> torch.Tensor:
    """Points (K, r): the attacks that need no search, and all that the attackers know.

    No attack, zeros, sign flipping, every honest worker's vector (Mimic), Min-Max and Min-Sum, and
    the vectors beyond the honest ones with their opposites, flipped labels among them.
    """
    known, mean = view.places[view.scene.h :], view.mean
    points = [torch.stack([mean, torch.zeros_like(mean), -mean]), view.honest, known, -known]
    return torch.cat([*points, _disguised(view)])


def _disguised(view: View) -> torch.Tensor:
    """Min-Max and Min-Sum along −σ and −m̄."""
    gaps = view.mean - view.honest
    among = (view.honest.unsqueeze(0) - view.honest.unsqueeze(1)).square().sum(2)
    points = [view.mean]
    for direction in (-view.places[view.scene.h], -view.mean):
        length = direction.norm()
        if length > 0:
            unit = direction / length
            for attack in (MinMax(), MinSum()):
                factor = attack.largest(among, gaps.square().sum(1), gaps @ unit)
                points.append(view.mean + factor * unit)
    return torch.stack(points)


def lines(view: View, points: int) -> torch.Tensor:
    """About ``points`` points (K, r) on lines from the honest mean.

    They run against the mean, along all that the attackers know, towards and away from every
    honest vector, and along the axes of the span: nothing honest need lie far in a direction for
    the attackers to go there.
    """
    known, mean = view.places[view.scene.h :], view.mean
    deviations = view.honest - mean
    axes = view.spread * torch.eye(view.size, dtype=torch.float64)
    both_ways = torch.cat([known, deviations, axes])
    directions = torch.cat([-mean.unsqueeze(0), both_ways, -both_ways])
    count = max(4, points // len(directions))
    near, far = math.log10(NEAREST), math.log10(FARTHEST)
    factors = torch.logspace(near, far, count, dtype=torch.float64)
    return mean + (factors[:, None, None] * directions).reshape(-1, view.size)


def against_few(view: View) -> torch.Tensor:
    """Points (K, r) on the side of the honest mean that is opposite to up to f honest vectors.

    NNM and Multi-Krum leave out as many vectors as they expect attackers. The most damage is done
    where these are honest ones, those farthest from the mean above all.
    """
    deviations = view.honest - view.mean
    farthest = deviations.norm(dim=1).argsort(descending=True, stable=True)[:FARTHEST_HONEST]
    directions = [
        -deviations[list(few)].sum(0) / size**0.5
        for size in range(1, min(view.scene.f, MOST_AGAINST) + 1)
        for few in combinations(farthest.tolist(), size)
    ]
    factors = torch.tensor(AGAINST, dtype=torch.float64)[:, None, None]
    return view.mean + (factors * torch.stack(directions)).reshape(-1, view.size)


def rescaled(view: View, points: torch.Tensor) -> torch.Tensor:
    """Points (K, r) brought to just below every honest norm, and stretched about the mean."""
    norms = view.honest.norm(dim=1)
    lengths = points.norm(dim=1).clamp(min=torch.finfo(torch.float64).tiny)
    scales = BELOW * norms.unsqueeze(1) / lengths
    stretches = torch.tensor(STRETCHES, dtype=torch.float64)[:, None, None]
    stretched = view.mean + stretches * (points - view.mean)
    return torch.cat([scales.unsqueeze(2) * points, stretched]).reshape(-1, view.size)
