"""Rules that look at one coordinate at a time."""

from typing import ClassVar

import torch

from lit_byz.robust._base import Rule
from lit_byz.robust._basis import Basis, NonFiniteRows
from lit_byz.robust._beside import Beside
from lit_byz.robust._columns import ColumnsResult, Reduction, probe_columns, reduce_columns
from lit_byz.robust._geometry import Geometry
from lit_byz.robust._returned import reduction_of


class CoordinateRule(Rule):
    """A rule that looks at one coordinate at a time, and at its values only in sorted order."""

    to_write: ClassVar[tuple[str, ...]] = ("reduction", "outputs")
    example: ClassVar[str] = (
        "from lit_byz.robust import CoordinateRule, Reduction\n"
        "class MyRule(CoordinateRule):\n"
        "    def reduction(self, n): return Reduction((n - 1) // 2, n // 2 + 1)"
    )

    def reduction(self, n: int) -> Reduction:
        raise TypeError(f"{type(self).__name__} does not say how it reduces")

    def outputs(self, geometry: Geometry) -> torch.Tensor:
        results = [self._run(geometry, rows, c).output for rows, c in self._passes(geometry)]
        found = torch.cat([output for output in results if output is not None])
        return found.reshape(*geometry.batch, geometry.basis.rows.shape[-1])

    def damages(self, geometry: Geometry, centre: torch.Tensor) -> torch.Tensor:
        damages = self._judged(geometry, centre).damages
        assert damages is not None
        return damages.reshape(geometry.matrix.shape[:-2])

    def alignments(self, geometry: Geometry, direction: torch.Tensor) -> torch.Tensor:
        target = geometry.basis.combine(direction).double()
        return geometry.basis.total((self.outputs(geometry).double() @ target).cpu())

    def output_and_damage(
        self, geometry: Geometry, centre: torch.Tensor
    ) -> tuple[torch.Tensor, float]:
        result = self._judged(geometry, centre, keep=True)
        assert result.output is not None
        assert result.damages is not None
        return result.output[0], float(result.damages[0])

    def _judged(
        self, geometry: Geometry, centre: torch.Tensor, *, keep: bool = False
    ) -> ColumnsResult:
        """The distances of the outputs from ``centre @ basis``, and the outputs to ``keep``."""
        basis, n = geometry.basis, geometry.n
        if isinstance(basis, Beside) and torch.equal(centre, basis.last):
            probes = (basis.rows, geometry.matrix.reshape(-1, n, basis.size), n)
            aim = (reduction_of(self, n), basis.centre, basis.lengths)
            found = probe_columns(*probes, *aim, keep=keep)
            if found is not None:
                return self._told(basis, found)
        ((rows, c),) = self._passes(geometry)
        return self._run(geometry, rows, c, basis.over_rows(centre), keep=keep)

    def _run(
        self,
        geometry: Geometry,
        rows: torch.Tensor,
        coefficients: torch.Tensor | None,
        centre: torch.Tensor | None = None,
        *,
        keep: bool = False,
    ) -> ColumnsResult:
        n = geometry.n
        result = reduce_columns(rows, coefficients, n, reduction_of(self, n), centre, keep=keep)
        return self._told(geometry.basis, result)

    @staticmethod
    def _told(basis: Basis, result: ColumnsResult) -> ColumnsResult:
        """The result over all columns, here and elsewhere, if they are finite."""
        if basis.shard is not None and result.damages is not None:
            # One message tells of the damage and of what is not finite.
            told = torch.cat([result.damages.square(), torch.tensor([float(not result.finite)])])
            *squares, broken = basis.shard.sum(told)
            damages = torch.stack(squares).sqrt()
            result = ColumnsResult(result.output, damages, finite=not broken)
            if broken and not basis.trusted:
                raise NonFiniteRows
            return result
        basis.agree(result.finite)
        return result

    @staticmethod
    def _passes(geometry: Geometry) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
        """(basis rows, coefficients) of each pass: one, unless the basis itself is batched."""
        rows, c = geometry.basis.rows, geometry.coefficients
        n, m = geometry.n, rows.shape[-2]
        c = None if c is None else geometry.basis.over_rows(c)
        if rows.dim() == 2:
            return [(rows, None if c is None else c.reshape(-1, n, m))]
        flat = rows.reshape(-1, *rows.shape[-2:])
        if c is None:
            return [(x, None) for x in flat]
        spread = c.expand(*rows.shape[:-2], n, m).reshape(-1, 1, n, m)
        return list(zip(flat, spread, strict=True))
