"""The strongest attack that is known here: a search of all that the attackers can make."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch.nn.functional import pad

from lit_byz._checks import keep_integer
from lit_byz._streams import Stream, torch_generator
from lit_byz.attacks import _starts
from lit_byz.attacks._alie import ALIE
from lit_byz.attacks._base import ATTACKS, Attack, Move, Scene, State
from lit_byz.attacks._evolution import evolve
from lit_byz.attacks._foe import FOE
from lit_byz.attacks._view import View
from lit_byz.robust import Basis
from lit_byz.robust.vectors import threshold_of

# This share of the budget surveys lines from the honest mean; so many of the best points found
# there are rescaled.
SURVEY = 0.15
RESCALED = 8
# How many points are looked at exactly in the end, and how many are kept for the next step.
FINALISTS = 3
KEPT = 2
# Without a defence the damage has no maximum: what is sent is at most so many times as long as the
# longest honest vector, and far from overflowing.
LONGEST = 1e5
FROM_OVERFLOW = 0.1
# Safely above the threshold, so that no rounding brings a vector below it.
ABOVE = 1.001


@ATTACKS.register("span")
@dataclass(frozen=True)
class Span(Attack):
    """The strongest vector found among all combinations of the honest vectors and σ.

    At every step about ``budget`` vectors are tried on the server's whole step, beside those that
    the searches of FOE and ALIE try: first, whatever the budget, the published attacks, a few
    hundred vectors on lines from the honest mean, and what did best at the step before; then
    evolution strategies go on from the best. The attackers may also combine the honest workers'
    mean gradient on flipped labels (``flipped``) and what they sent last (``memory``); with
    ``distinct`` each sends a vector of its own.

    ``objective`` is what they want: the greatest ``distance`` ‖R − m̄‖, the least ``descent``
    ⟨R, m̄⟩, or the least ``drift`` ⟨R, u⟩ along the direction u of the honest mean over all steps so
    far, which then is one more vector to combine. By distance they never do less damage than FOE()
    or ALIE() would.

    >>> honest = torch.tensor([[1.0, 0.0], [1.0, 0.5], [0.5, 0.0]])
    >>> Span(distinct=True)(honest, f=2).shape
    torch.Size([2, 2])
    """

    numerics: ClassVar[int] = 2
    by_columns = True
    column_state = frozenset({"path", "sent"})

    objective: Literal["distance", "descent", "drift"] = "distance"
    flipped: bool = False
    memory: bool = False
    distinct: bool = False
    budget: int = 2500
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in ("distance", "descent", "drift"):
            raise ValueError(
                f"Span: objective must be one of distance, descent, drift, got {self.objective!r}"
            )
        keep_integer(self, "budget", 1)
        keep_integer(self, "seed", 0)

    @property
    def needs_flipped(self) -> bool:
        return self.flipped

    def plan(self, scene: Scene, state: State) -> Move:
        published = [FOE().act(scene, {}), ALIE().act(scene, {})]
        path = self._path(scene, state)
        basis = self._basis(scene, state, path, published[1].basis)
        view = View(scene, basis, self._direction(scene, basis))
        search = _Search(view, torch_generator(self.seed, Stream.SPAN, scene.step))
        known = [move.coefficients for move in published]
        starts = [pad(made_of, (0, basis.size - len(made_of))) for made_of in known]
        finalists = search.run(torch.stack(starts), state, self.budget, self.distinct)
        values, damages = view.settle(finalists)
        best = int(values.argmax())
        sent = finalists[best]
        move = Move(
            basis,
            sent.expand(scene.f, -1) if self.distinct else sent[0],
            damage=float(damages[best]),
            at_edge=search.at_edge(sent),
        )
        if path is not None:
            state["path"], state["seen"] = path, state.get("seen", torch.tensor(0)) + 1
        if self.memory:
            state["sent"] = move.vector().reshape(-1, basis.rows.shape[1])
        return move

    def _path(self, scene: Scene, state: State) -> torch.Tensor | None:
        """The mean over all steps so far of the honest mean (d,), where it is wanted."""
        if self.objective != "drift":
            return None
        mean = scene.honest.combine(scene.mean)
        if "path" not in state:
            return mean
        return torch.lerp(state["path"], mean, 1 / (int(state["seen"]) + 1))

    def _basis(self, scene: Scene, state: State, path: torch.Tensor | None, spread: Basis) -> Basis:
        """What may be combined: ``spread`` (the honest vectors and σ), and what else is known."""
        rows = spread.rows
        more = []
        if self.flipped:
            assert scene.flipped is not None
            more.append(scene.flipped.unsqueeze(0))
        if self.memory:
            nothing = rows.new_zeros(scene.f if self.distinct else 1, rows.shape[1])
            more.append(state.get("sent", nothing))
        if path is not None:
            more.append(path.unsqueeze(0))
        if not more:
            return spread
        beside = torch.cat(more)
        # Gradients on flipped labels may overflow while the honest ones do not.
        broken = spread.total((~beside.isfinite()).sum(1, keepdim=True).double())
        return spread.like(torch.cat([rows, torch.where(broken > 0, 0, beside)]))

    def _direction(self, scene: Scene, basis: Basis) -> torch.Tensor | None:
        """The coefficients of the direction in which there shall be no progress."""
        if self.objective == "distance":
            return None
        direction = torch.zeros(basis.size, dtype=torch.float64)
        if self.objective == "descent":
            direction[: scene.h] = scene.mean
        else:
            direction[-1] = 1
        return direction


class _Search:
    """One step's search: finalists, by their coefficients, to be looked at exactly."""

    def __init__(self, view: View, generator: torch.Generator) -> None:
        self.view, self.generator = view, generator
        most = float(view.honest.norm(dim=1).max())
        overflow = torch.finfo(view.basis.rows.dtype).max
        self.edge = self.longest = min(LONGEST * most, FROM_OVERFLOW * overflow)
        clipped_at = self._clipped_at()
        if math.isfinite(clipped_at):
            # What is longer is clipped to the same vector. Out there steps would be in vain.
            self.longest = min(self.longest, ABOVE * max(most, clipped_at))

    def _clipped_at(self) -> float:
        """Where vectors are clipped that are longer than any; infinite if they are not."""
        scene = self.view.scene
        norms = self.view.honest.norm(dim=1)
        endless = norms.new_full((scene.f,), math.inf)
        return float(threshold_of(scene.server.clip, torch.cat([norms, endless])))

    def run(
        self, published: torch.Tensor, state: State, budget: int, distinct: bool
    ) -> torch.Tensor:
        """Coefficients (K, 1, m), or (K, f, m) for distinct vectors; ``published`` is (P, m)."""
        view, f = self.view, self.view.scene.f
        if view.size == 0:
            return published.unsqueeze(1)
        each = distinct and f > 1
        points = self._one_for_all(published, state, budget // 2 if each else budget)
        state["together"] = view.coefficients(points[:KEPT])
        finalists = points[:FINALISTS].unsqueeze(1)
        if each:
            sets = self._one_each(points, state, budget - budget // 2)
            state["apart"] = view.coefficients(sets[:KEPT])
            finalists = torch.cat([sets[:FINALISTS], finalists[:1].expand(-1, f, -1)])
        found = view.coefficients(finalists)
        return torch.cat([found, published.unsqueeze(1).expand(-1, found.shape[1], -1)])

    def _one_for_all(self, published: torch.Tensor, state: State, budget: int) -> torch.Tensor:
        """The best points (K, r) for all attackers to send."""
        view = self.view
        before = state.get("together", published[:0])
        known = torch.cat([published, before]) @ view.places
        survey = _starts.lines(view, int(SURVEY * budget)), _starts.against_few(view)
        points = self._limit(torch.cat([known, _starts.landmarks(view), *survey]))
        values = view.estimate(points.unsqueeze(1))
        best = points[values.topk(min(RESCALED, len(values))).indices]
        more = self._limit(_starts.rescaled(view, best))
        points, values = (
            torch.cat([points, more]),
            torch.cat([values, view.estimate(more.unsqueeze(1))]),
        )
        return self._evolve(points.unsqueeze(1), values, budget - len(points))[:, 0]

    def _one_each(self, points: torch.Tensor, state: State, budget: int) -> torch.Tensor:
        """The best sets of points (K, f, r), one for each attacker."""
        view, f = self.view, self.view.scene.f
        cycled = points[torch.arange(f) % len(points)].unsqueeze(0)
        sets = [points.unsqueeze(1).expand(-1, f, -1), cycled]
        if "apart" in state:
            sets.append(state["apart"] @ view.places)
        starts = self._limit(torch.cat(sets))
        return self._evolve(starts, view.estimate(starts), budget - len(starts))

    def _evolve(self, sets: torch.Tensor, values: torch.Tensor, budget: int) -> torch.Tensor:
        shape = sets.shape[1:]

        def score(flat: torch.Tensor) -> torch.Tensor:
            return self.view.estimate(flat.unflatten(-1, shape))

        def limit(flat: torch.Tensor) -> torch.Tensor:
            return self._limit(flat.unflatten(-1, shape)).flatten(-2)

        # Far out it takes large steps to turn. Workers that agree have no spread to measure by.
        least = self.view.spread or float(self.view.mean.norm())
        distances = (sets - self.view.mean).square().sum(2).mean(1).sqrt()
        scales = distances.clamp(min=least)
        found, _ = evolve(score, sets.flatten(1), values, scales, limit, budget, self.generator)
        return found.unflatten(-1, shape)

    def _limit(self, points: torch.Tensor) -> torch.Tensor:
        lengths = points.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
        return points * (self.longest / lengths).clamp(max=1)

    def at_edge(self, sent: torch.Tensor) -> bool:
        """Whether some vector is about as long as one may be, and clipping does not cut it."""
        longest = float((sent @ self.view.places).norm(dim=-1).max())
        return longest > 0.9 * self.edge and math.isinf(self._clipped_at())
