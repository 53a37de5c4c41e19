"""What clips, mixes and rules share. A new one is a subclass in a file of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import torch

from lit_byz._checks import check_minority
from lit_byz.robust._basis import Basis, NonFiniteRows
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._inputs import as_rows
from lit_byz.robust._registries import CLIPS, MIXES, RULES
from lit_byz.robust._returned import matrix_of, threshold_of, vector_of, weights_of

Result = TypeVar("Result")


class NothingFinite(ValueError):
    """No vector has a finite squared norm: no output can be given."""


def on_finite_rows(
    owner: object, basis: Basis, work: Callable[[Basis], Result]
) -> tuple[Result, Basis]:
    """``work(basis)`` with zeros for non-finite rows, and the basis with them.

    The attacker could have sent zeros, so every guarantee of the rule stays as it is.
    """
    try:
        return work(basis), basis
    except NonFiniteRows:
        clean = basis.sanitised()
        if bool(clean.non_finite.all(-1).any()):
            name = type(owner).__name__
            raise NothingFinite(
                f"{name}: every vector is non-finite or too long (its squared norm is not finite), "
                "nothing is left"
            ) from None
        return work(clean), clean


class Clip:
    """Scales down the vectors that are longer than a threshold.

    A subclass says where the threshold lies, given the norms.
    """

    to_write: ClassVar[tuple[str, ...]] = ("threshold", "apply")
    example: ClassVar[str] = CLIPS.example

    def check(self, n: int) -> None:
        """Raise ValueError where n vectors cannot be clipped like this."""

    def threshold(self, norms: torch.Tensor) -> torch.Tensor:
        """The threshold C (...) for vectors of these norms (..., n)."""
        raise TypeError(f"{type(self).__name__} does not say where its threshold lies")

    def apply(self, geometry: Geometry) -> tuple[Geometry, torch.Tensor]:
        """The clipped vectors, and the threshold."""
        self.check(geometry.n)
        threshold = threshold_of(self, geometry.norms)
        limit = threshold.unsqueeze(-1)
        too_long = geometry.norms > limit
        if not bool(too_long.any()):
            return geometry, threshold
        scale = torch.where(too_long, limit / geometry.norms, 1.0)
        return geometry.scaled(scale), threshold

    def __call__(self, x: Any) -> Any:
        """The clipped vectors, of the same kind and shape (..., n, d) as ``x``."""
        rows, _, restore = as_rows(self, x)
        return restore(_scaled_rows(self, rows))


def _scaled_rows(clip: Clip, rows: torch.Tensor) -> torch.Tensor:
    def work(basis: Basis) -> torch.Tensor:
        geometry = Geometry(basis)
        _ = geometry.norms  # which notices rows that are not finite, whatever the clip looks at
        scale = clip.apply(geometry)[0].matrix.diagonal(dim1=-2, dim2=-1).to(basis.rows)
        return basis.rows * scale.unsqueeze(-1)

    return on_finite_rows(clip, Basis(rows), work)[0]


class Mix:
    """Replaces the vectors by averages of them, before the rule.

    A subclass gives the averaging matrix. ``step`` numbers the server's steps, for mixes that
    draw at random: the same step draws the same.
    """

    uses_distances: ClassVar[bool] = True
    to_write: ClassVar[tuple[str, ...]] = ("matrix", "apply")
    example: ClassVar[str] = MIXES.example

    def check(self, n: int) -> None:
        """Raise ValueError where n vectors cannot be mixed like this."""

    def rows_after(self, n: int) -> int:
        """How many vectors come out for n that go in."""
        return n

    def matrix(self, geometry: Geometry, step: int = 0) -> torch.Tensor:
        """The averaging matrix (..., rows, n)."""
        raise TypeError(f"{type(self).__name__} does not say how it mixes")

    def apply(self, geometry: Geometry, step: int = 0) -> Geometry:
        self.check(geometry.n)
        return geometry.mixed(matrix_of(self, geometry, step, self.rows_after(geometry.n)))

    def __call__(self, x: Any, step: int = 0) -> Any:
        """The mixed vectors, of the same kind as ``x`` (..., n, d)."""
        rows, _, restore = as_rows(self, x)

        def work(basis: Basis) -> torch.Tensor:
            mixed = self.apply(Geometry(basis), step)
            rows = basis.check(mixed.rows())
            # Without coefficients they are the caller's own, who may write to what comes back.
            return rows.clone() if mixed.coefficients is None else rows

        return restore(on_finite_rows(self, Basis(rows), work)[0])


@dataclass(frozen=True)
class Choice:
    """How a rule came to its output, where it can say: weights (..., n), selected rows (..., n)."""

    weights: torch.Tensor | None = None
    selected: torch.Tensor | None = None


class Rule:
    """n vectors to one. A subclass writes :meth:`aggregate`, or derives from one of the two below.

    Attacks that search ask what the rule would put out for many vectors at every step: the two
    below answer without forming them, and that is several times as fast.

    >>> from lit_byz.robust import Rule
    >>> class Midrange(Rule):
    ...     def aggregate(self, x):
    ...         return (x.amin(0) + x.amax(0)) / 2
    >>> Midrange()(torch.tensor([[0.0], [1.0], [5.0]]))
    tensor([2.5000])
    """

    uses_distances: ClassVar[bool] = False
    to_write: ClassVar[tuple[str, ...]] = ("aggregate", "outputs")
    example: ClassVar[str] = RULES.example

    def check(self, n: int) -> None:
        """Raise ValueError where the rule cannot work on n vectors."""
        f = getattr(self, "f", 0)
        if isinstance(f, Integral):
            check_minority(self, int(f), n)

    def aggregate(self, x: torch.Tensor) -> torch.Tensor:
        """The output (d,) for the rows of x (n, d)."""
        raise TypeError(f"{type(self).__name__} does not say how it aggregates")

    def outputs(self, geometry: Geometry) -> torch.Tensor:
        """The outputs (..., d) for vectors given by a geometry."""
        rows = geometry.basis.check(geometry.rows())
        if geometry.coefficients is None:
            rows = rows.clone()  # the workers' own vectors are not a user's to write to
        each = rows.reshape(-1, *rows.shape[-2:])
        flat = [vector_of(self, x) for x in each]
        return torch.stack(flat).reshape(*rows.shape[:-2], rows.shape[-1])

    def damages(self, geometry: Geometry, centre: torch.Tensor) -> torch.Tensor:
        """‖output − centre @ basis‖ (...), without keeping the outputs where possible."""
        basis = geometry.basis
        target = basis.combine(centre)
        probes = geometry.matrix.reshape(-1, *geometry.matrix.shape[-2:])
        gaps = [self.outputs(Geometry(basis, c)) - target for c in probes]
        found = torch.stack([gap.double().norm() for gap in gaps]).cpu()
        return found.reshape(geometry.matrix.shape[:-2])

    def alignments(self, geometry: Geometry, direction: torch.Tensor) -> torch.Tensor:
        """⟨output, direction @ basis⟩ (...), without keeping the outputs where possible."""
        basis = geometry.basis
        target = basis.combine(direction).double()
        probes = geometry.matrix.reshape(-1, *geometry.matrix.shape[-2:])
        found = [self.outputs(Geometry(basis, c)).double() @ target for c in probes]
        return torch.stack(found).cpu().reshape(geometry.matrix.shape[:-2])

    def output_and_damage(
        self, geometry: Geometry, centre: torch.Tensor
    ) -> tuple[torch.Tensor, float]:
        """The output (d,) for one set of vectors, and its distance from ``centre @ basis``."""
        output = self.outputs(geometry)
        return output, float((output - geometry.basis.combine(centre)).norm())

    def choice(self, geometry: Geometry) -> Choice:
        return Choice()

    def __call__(self, x: Any) -> Any:
        """The aggregate (..., d) of the vectors x (..., n, d), of the same kind as ``x``."""
        rows, restore, _ = as_rows(self, x)
        self.check(rows.shape[-2])
        return restore(on_finite_rows(self, Basis(rows), lambda b: self.outputs(Geometry(b)))[0])


class GeometricRule(Rule):
    """A rule whose output is a weighted sum of its inputs, the weights a function of distances."""

    uses_distances: ClassVar[bool] = True
    to_write: ClassVar[tuple[str, ...]] = ("weights", "outputs")
    example: ClassVar[str] = (
        "from lit_byz.robust import GeometricRule\n"
        "class MyRule(GeometricRule):\n"
        "    def weights(self, geometry): return (0 * geometry.norms + 1) / geometry.n"
    )

    def weights(self, geometry: Geometry) -> torch.Tensor:
        """The weights (..., n)."""
        raise TypeError(f"{type(self).__name__} does not say how it weighs")

    def outputs(self, geometry: Geometry) -> torch.Tensor:
        return geometry.combine(weights_of(self, geometry))

    def damages(self, geometry: Geometry, centre: torch.Tensor) -> torch.Tensor:
        return geometry.combination_norms(self._made_of(geometry) - centre)

    def alignments(self, geometry: Geometry, direction: torch.Tensor) -> torch.Tensor:
        return self._made_of(geometry) @ (geometry.basis.gram @ direction)

    def _made_of(self, geometry: Geometry) -> torch.Tensor:
        """The coefficients (..., m) of the output over the basis."""
        return (weights_of(self, geometry).unsqueeze(-2) @ geometry.matrix).squeeze(-2)

    def output_and_damage(
        self, geometry: Geometry, centre: torch.Tensor
    ) -> tuple[torch.Tensor, float]:
        made_of = weights_of(self, geometry) @ geometry.matrix
        damage = geometry.combination_norms(made_of - centre)
        return geometry.basis.combine(made_of), float(damage)

    def choice(self, geometry: Geometry) -> Choice:
        return Choice(weights=weights_of(self, geometry))
