"""Every claim of the paper beside what our runs say, at its strength and at ours."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lit_byz.report.paper.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Claim
from lit_byz.report.paper.survey import SHOWN, Survey
from lit_byz.report.paper.tables import Table

OURS = SHOWN[1]


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, and what was measured at the paper's strength and at ours."""

    claim: Claim
    verdict: str
    measured: str
    at_ours: str
    verdict_at_ours: str
    seeds: int
    begun: int

    @property
    def plain(self) -> dict[str, Any]:
        """For JSON."""
        claim = self.claim
        return {
            **{"id": claim.id, "place": claim.place, "says": claim.says, "paper": claim.paper},
            **{"allowed": claim.allowed, "verdict": self.verdict, "measured": self.measured},
            **{"at_ours": self.at_ours, "verdict_at_ours": self.verdict_at_ours},
            **{"seeds": self.seeds, "begun": self.begun},
        }


def judge(claims: Sequence[Claim], surveys: Mapping[str, Survey]) -> list[Judged]:
    """The claims of the experiments that were surveyed."""
    judged = []
    for claim in claims:
        found = surveys.get(claim.experiment)
        if found is None:
            continue
        paper, ours = (claim.measured(found, strength) for strength in SHOWN)
        judged.append(
            Judged(
                claim,
                claim.verdict(paper),
                claim.shown(paper),
                claim.shown(ours),
                claim.verdict(ours),
                0 if paper is None else paper.seeds,
                0 if paper is None else paper.begun,
            )
        )
    return judged


def table(judged: Sequence[Judged], *, undecided: bool = True) -> Table:
    """A row for each claim; those without runs can be left out."""
    chosen = [j for j in judged if undecided or j.verdict != UNDECIDED or j.measured]
    rows = [
        [c.place, c.says, c.paper, c.allowed, j.measured, j.verdict, _at_ours(j)]
        for j in chosen
        for c in [j.claim]
    ]
    header = ["where", "claim", "paper", "counts as that", "ours (seeds)", "verdict"]
    title = f"Scorecard: {summary(judged)}"
    return Table(title, [*header, "against our stronger search"], rows, names=2)


def _at_ours(judged: Judged) -> str:
    if not judged.at_ours or judged.at_ours == judged.measured:
        return judged.at_ours and "the same"
    return f"{judged.at_ours}: {judged.verdict_at_ours}"


def summary(judged: Sequence[Judged]) -> str:
    """How many claims there are of each verdict."""
    counts = Counter(j.verdict for j in judged)
    parts = [f"{counts[v]} {v}" for v in (REPRODUCED, NOT_REPRODUCED, UNDECIDED)]
    return f"{len(judged)} claims: {', '.join(parts)}"


def decided(judged: Sequence[Judged]) -> int:
    """How many claims the runs decide."""
    return sum(j.verdict != UNDECIDED for j in judged)
