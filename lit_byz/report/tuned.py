"""A tuning study as the ledger has it: its trials, what they are compared with, and their cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lit_byz.report.drawing import chance_of
from lit_byz.report.rendering import SIGNS, images_of
from lit_byz.report.words import SYMBOLS
from lit_byz.tracking.records import CellResult, StudyResult
from lit_byz.tracking.worst_case import WorstCase


def shown(value: Any) -> str:
    """A tuned value as tables show it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def percent(found: WorstCase) -> str:
    """A worst case in a sentence: a bound with its sign."""
    if found.kind == "unknown":
        return found.kind
    return f"{SIGNS[found.kind]}{100 * found.mean:.1f} %"


@dataclass(frozen=True)
class TrialResult:
    """A trial; its value is its worst case, or what that is at most where it was pruned."""

    number: int
    params: Mapping[str, Any]
    state: str  # complete, pruned, failed or running
    value: float | None
    cell: CellResult

    @property
    def at_most(self) -> float | None:
        """The value, or what the worst case is at most where runs were pruned or failed."""
        worst = self.cell.worst_case
        failed = self.state == "failed" and worst.kind != "unknown"
        return worst.at_most if failed and self.value is None else self.value

    @property
    def most(self) -> float:
        """What the worst case is at most; 1 where nothing is known of it."""
        pruned = self.state == "pruned" and self.value is not None
        return float(self.value or 0.0) if pruned else self.cell.worst_case.at_most

    @property
    def bound_in_words(self) -> str:
        if not self.cell.worst_case.known:
            return f"nothing is known of trial {self.number}"
        return f"trial {self.number} is at most {100 * self.most:.1f} %"

    @property
    def settings(self) -> str:
        return ", ".join(f"{key} = {shown(value)}" for key, value in self.params.items())

    @property
    def in_words(self) -> str:
        return ", ".join(f"{SYMBOLS.get(k, k)} = {shown(v)}" for k, v in self.params.items())

    @property
    def percent(self) -> str:
        return percent(self.cell.worst_case)


@dataclass(frozen=True)
class Comparison:
    """What the trials are compared with, such as ARC."""

    name: str
    cell: CellResult

    @property
    def value(self) -> float | None:
        """The worst case; None unless it is exactly known."""
        return self.cell.worst_case.mean if self.cell.worst_case.exact else None


@dataclass(frozen=True)
class Cost:
    """What the trials took; ``steps_saved`` of ``steps`` were not needed."""

    runs: int
    computed: int
    found: int
    bounded: int
    pruned: int
    steps: int
    steps_saved: int
    seconds: float

    @property
    def pruned_share(self) -> float:
        return self.pruned / self.runs if self.runs else 0.0


@dataclass(frozen=True)
class Tuned:
    """A study of ``keys``; those in ``log`` are searched on a log scale.

    ``chance`` is the accuracy of guessing.
    """

    title: str
    keys: Sequence[str]
    attacks: Sequence[str]
    trials: Sequence[TrialResult]
    comparisons: Sequence[Comparison]
    cost: Cost
    log: frozenset[str] = frozenset()
    judged_on: str = "test"
    chance: float | None = None

    @property
    def images(self) -> str:
        """What the trials are judged on, in words."""
        return images_of(self.judged_on)

    @property
    def highest(self) -> TrialResult | None:
        """The best complete trial; one that failed or has not ended may be better yet."""
        done = [trial for trial in self.trials if trial.state == "complete"]
        return max(done, key=lambda trial: trial.value or 0.0, default=None)

    @property
    def could_be_better(self) -> list[TrialResult]:
        """Trials that may be better than that one for all that is known, the likeliest first."""
        highest = self.highest
        if highest is None:
            return []
        bounded = [trial for trial in self.trials if not trial.cell.worst_case.exact]
        value = highest.value or 0.0
        found = [trial for trial in bounded if trial is not highest and trial.most > value]
        return sorted(found, key=lambda trial: -trial.most)

    @property
    def best(self) -> TrialResult | None:
        """The best one; None while another could be better."""
        return None if self.could_be_better else self.highest

    @property
    def called(self) -> str:
        """What the highest one is called."""
        return "best that is exactly known" if self.could_be_better else "best"

    def reservations(self, most: int = 3) -> str:
        """What is known of the trials that could be better: of a few, and how many others."""
        found = [trial.bound_in_words for trial in self.could_be_better]
        more = [f"and {len(found) - most} more"] if len(found) > most else []
        return f"could be better: {', '.join([*found[:most], *more])}"

    @property
    def lowest(self) -> TrialResult | None:
        """The trial that is known to be lowest; one that was pruned or failed may be lower yet."""
        known = [trial for trial in self.trials if trial.cell.worst_case.known]
        return min(known, key=lambda trial: trial.cell.worst_case.at_most, default=None)

    @property
    def worst(self) -> TrialResult | None:
        """The lowest one; None while another could be lower."""
        lowest = self.lowest
        if lowest is None:
            return None
        others = [trial.cell.worst_case for trial in self.trials if trial is not lowest]
        most = lowest.cell.worst_case.at_most
        return lowest if all(most <= other.at_least for other in others) else None


def tuned(result: StudyResult) -> Tuned:
    """A study as the ledger has it."""
    facts = result.record.facts
    trials = [
        TrialResult(
            number=cell.facts["trial"],
            params=cell.facts["params"],
            state=cell.facts.get("state", "running"),
            value=cell.facts.get("value"),
            cell=cell,
        )
        for cell in sorted(result.of_kind("trial"), key=lambda cell: cell.facts["trial"])
    ]
    comparisons = [Comparison(c.name, c) for c in result.of_kind("cell") if "comparison" in c.facts]
    return Tuned(
        title=f"{len(trials)} trials on {facts['cell']}",
        keys=facts["keys"],
        attacks=facts["attacks"],
        trials=trials,
        comparisons=comparisons,
        cost=_cost(trials, facts["runs_per_trial"]),
        log=frozenset(facts["log"]),
        judged_on=facts.get("judged_on", "test"),
        chance=chance_of(str(facts["dataset"])),
    )


def _cost(trials: Sequence[TrialResult], runs: int) -> Cost:
    """Of the trials that have ended; where the steps are tuned, each has its own."""
    ended = [trial.cell for trial in trials if trial.state != "running"]
    names = ("computed", "found", "bounded", "pruned", "steps_saved", "seconds")
    total = {name: sum(cell.facts["cost"][name] for cell in ended) for name in names}
    steps = sum(run.steps for cell in ended for run in cell.record.runs)
    return Cost(runs=len(ended) * runs, steps=steps, **total)
