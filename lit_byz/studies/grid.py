"""A plain grid: every run, in order; or only as far as the worst case needs them."""

from collections.abc import Mapping, Sequence
from typing import Any

from lit_byz.config.grid import Point
from lit_byz.execution.board import Board, Proposal, Recall, nothing_known
from lit_byz.tracking.outcome import Outcome


class GridStudy:
    """Every run of a grid, one after the other."""

    def __init__(self, points: Sequence[Point], recall: Recall = nothing_known) -> None:
        self.board = Board(recall)
        self.board.add(points)

    def propose(self) -> Proposal | None:
        point = next(self.board.ready, None)
        return None if point is None else Proposal(self.board.start(point))

    def hear(self, outcome: Outcome) -> None:
        self.board.end(outcome)

    def facts(self) -> Mapping[str, Any]:
        return {}


class WorstCaseStudy(GridStudy):
    """A grid of which only the worst cases count: runs stop once they cannot lower theirs.

    Cells that nobody works on come first, and within one the attack that has hurt most so far.
    """

    def __init__(self, points: Sequence[Point], recall: Recall = nothing_known) -> None:
        super().__init__(points, recall)
        self.board.reconsider(self.board.points)

    def propose(self) -> Proposal | None:
        point = self.board.most_urgent()
        if point is None:
            return None
        return Proposal(self.board.start(point), self.board.smallest(point))

    def facts(self) -> Mapping[str, Any]:
        return {"worst_case_only": True}
