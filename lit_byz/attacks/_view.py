"""The span of what the attackers know, in coordinates of its own."""

from dataclasses import dataclass
from functools import cached_property

import torch

from lit_byz.attacks._base import Scene
from lit_byz.attacks._sample import sample_columns
from lit_byz.robust import Basis, CoordinateRule, GeometricRule, Geometry

# Directions whose squared length is below this share of the longest one's are left out: they are
# the rounding of the vectors, and enormous coefficients would blow it up.
NEGLIGIBLE = 1e-9
# Coordinate-wise rules are looked at through so many columns.
COLUMNS = 2048
# A batch is so large that no operation on its small matrices is worth a second thread.
BATCH = 1 << 15


@dataclass(frozen=True)
class View:
    """Points (..., r) of an orthonormal frame of the span of ``basis``, and what they are worth.

    Lengths, angles and distances of points are those of the vectors, so geometric rules see no
    difference, and no column of the basis is needed to judge a point. Coordinate-wise rules look
    at a sample of the columns. The value of a point is the damage ‖R − m̄‖, or −⟨R, v⟩ where a
    direction v is given, by its coefficients (m,) over the basis.
    """

    scene: Scene
    basis: Basis
    direction: torch.Tensor | None = None

    @cached_property
    def _axes(self) -> tuple[torch.Tensor, torch.Tensor]:
        squares, axes = torch.linalg.eigh(self.basis.gram)
        kept = squares > NEGLIGIBLE * squares[-1].clamp(min=0)
        lengths, axes = squares[kept].sqrt(), axes[:, kept]
        return axes * lengths, (axes / lengths).mT

    @property
    def places(self) -> torch.Tensor:
        """The basis as points (m, r)."""
        return self._axes[0]

    def coefficients(self, points: torch.Tensor) -> torch.Tensor:
        """What points (..., r) are made of: (..., m)."""
        return points @ self._axes[1]

    @property
    def size(self) -> int:
        return self.places.shape[1]

    @property
    def honest(self) -> torch.Tensor:
        return self.places[: self.scene.h]

    @cached_property
    def mean(self) -> torch.Tensor:
        return self.honest.mean(0)

    @cached_property
    def spread(self) -> float:
        """The root mean square distance of the honest vectors from their mean."""
        return float((self.honest - self.mean).square().sum(1).mean().sqrt())

    @cached_property
    def _frame(self) -> Basis:
        return Basis(torch.eye(self.size, dtype=torch.float64), trusted=True)

    @cached_property
    def _columns(self) -> Basis | None:
        """The frame's columns, or a sample of them, for rules that look at columns."""
        if not isinstance(self.scene.server.rule, CoordinateRule):
            return None
        rows = self.basis.rows
        if self.basis.width > COLUMNS:
            rows = sample_columns(self.basis, self.scene.honest, COLUMNS).rows
        elif self.basis.shard is not None:
            rows = self.basis.shard.join(rows)
        frame = self.coefficients(torch.eye(self.size, dtype=torch.float64))
        return Basis((frame.to(rows.device) @ rows.double()).to(rows.dtype), trusted=True)

    def estimate(self, points: torch.Tensor) -> torch.Tensor:
        """The values (K,) of sets of points (K, 1, r), one for all attackers, or (K, f, r)."""
        rule, scene = self.scene.server.rule, self.scene
        if not isinstance(rule, GeometricRule | CoordinateRule):
            # A rule of which nothing is known sees the vectors themselves.
            return self.settle(self.coefficients(points))[0]
        parts = []
        direction = None if self.direction is None else self.direction @ self.places
        on_cpu = self.basis.rows.device.type == "cpu"
        for some in points.split(max(1, BATCH // (scene.n + 1) ** 2) if on_cpu else len(points)):
            own = self.honest.expand(len(some), -1, -1)
            received = torch.cat([own, some.expand(-1, scene.f, -1)], dim=1)
            parts.append(self._values(Geometry(self._frame, received), self.mean, direction))
        return _finite(torch.cat(parts))

    def settle(self, sent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Exact values (K,) and damages (K,) of coefficients (K, 1, m) or (K, f, m)."""
        scene = self.scene
        centre = torch.zeros(self.basis.size, dtype=torch.float64)
        centre[: scene.h] = scene.mean
        received = scene.facing_each(self.basis, sent.expand(-1, scene.f, -1))
        damages = scene.server.damages(received, centre, scene.step)
        if self.direction is None:
            return _finite(damages), damages
        aligned = scene.server.alignments(received, self.direction, scene.step)
        return _finite(-aligned), damages

    def _values(
        self, received: Geometry, centre: torch.Tensor, direction: torch.Tensor | None
    ) -> torch.Tensor:
        server, step = self.scene.server, self.scene.step
        if direction is None:
            return server.damages(received, centre, step, self._columns)
        return -server.alignments(received, direction, step, self._columns)


def _finite(values: torch.Tensor) -> torch.Tensor:
    """A vector that overflows is replaced by zeros on its way: it must not be taken."""
    return values.nan_to_num(nan=-torch.inf, posinf=-torch.inf)
