"""⟨R, v⟩ of many outputs at once, without keeping them, is that of each output by itself."""

import pytest
import torch

from lit_byz.robust import ARC, NNM, Basis, Geometry, RobustAggregator, Rule
from tests.robust._cases import CASES, Case

N, F, M, D, PROBES = 9, 2, 6, 30, 5


class Midrange(Rule):
    """A rule of which nothing but its aggregate is known."""

    def aggregate(self, x: torch.Tensor) -> torch.Tensor:
        return (x.amin(0) + x.amax(0)) / 2


def problem() -> tuple[Geometry, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    rows = torch.randn(M, D, generator=draw, dtype=torch.float64)
    made_of = torch.randn(PROBES, N, M, generator=draw, dtype=torch.float64)
    direction = torch.randn(M, generator=draw, dtype=torch.float64)
    return Geometry(Basis(rows), made_of), direction


def expected(server: RobustAggregator, geometry: Geometry, direction: torch.Tensor) -> torch.Tensor:
    target = direction @ geometry.basis.rows
    return torch.stack([server(x) @ target for x in geometry.rows()])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("bounded", [False, True])
def test_every_rule(case: Case, bounded: bool, either_path: str) -> None:
    server = RobustAggregator(case.rule(F), clip=ARC(F), mix=NNM(F), bound_output=bounded)
    geometry, direction = problem()
    found = server.alignments(geometry, direction)
    torch.testing.assert_close(found, expected(server, geometry, direction))


def test_a_rule_of_which_nothing_is_known() -> None:
    server = RobustAggregator(Midrange())
    geometry, direction = problem()
    found = server.alignments(geometry, direction)
    torch.testing.assert_close(found, expected(server, geometry, direction))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("bounded", [False, True])
def test_all_columns_may_stand_for_the_basis(case: Case, bounded: bool) -> None:
    """In any order: clipping and mixing see the geometry itself."""
    server = RobustAggregator(case.rule(F), clip=ARC(F), mix=NNM(F), bound_output=bounded)
    geometry, direction = problem()
    columns = Basis(geometry.basis.rows.flip(1).contiguous())
    for question in (server.damages, server.alignments):
        whole = question(geometry, direction)
        torch.testing.assert_close(question(geometry, direction, columns=columns), whole)
