"""The cases of the benchmark of steps, what is measured of each, and the goals."""

from dataclasses import asdict, dataclass
from typing import Any

from lit_byz.benchmark._ratio import Ratio
from lit_byz.benchmark._simulations import MODEL

SEARCHED = ("foe", "alie")
TRACKING_SHARE = 0.03
# At least so many times as fast as ByzFL, by n where the attack searches.
SIMPLE_AHEAD = 5.0
SEARCHED_AHEAD = {11: 50.0, 39: 80.0}


@dataclass(frozen=True)
class Case:
    """A step of one model with one server under one attack."""

    name: str
    """As ``--only`` has it."""
    honest: int
    f: int
    attack: str
    rule: str = "cwtm"
    model: str = MODEL

    @property
    def n(self) -> int:
        return self.honest + self.f

    @property
    def is_large(self) -> bool:
        """Whether a step takes seconds: fewer repeats, no ByzFL."""
        return self.model != MODEL

    @property
    def over_floor_goal(self) -> float | None:
        """At most so many times the floor."""
        if self.is_large:
            return 1.3
        if self.attack not in SEARCHED:
            return 1.8 if self.attack == "lf" else 1.25
        if self.rule != "cwtm":
            return 1.4
        return {11: 1.5, 39: 1.8}.get(self.n)

    @property
    def ahead_goal(self) -> float | None:
        """At least so many times as fast as ByzFL."""
        if self.is_large:
            return None
        return SEARCHED_AHEAD.get(self.n) if self.attack in SEARCHED else SIMPLE_AHEAD


SIMPLE_NAMES = ("sf", "lf", "mimic", "foe", "alie")
# (h, f): the paper's MNIST runs, and a large server.
SIZES = [(10, 1), (30, 9)]
QUICK_SIZES = [(10, 1)]


def cases(*, quick: bool) -> list[Case]:
    """All cases; a quick run leaves out the large server and the models that take seconds."""
    sizes = QUICK_SIZES if quick else SIZES
    found = [Case(name, *size, name) for size in sizes for name in SIMPLE_NAMES]
    found += [
        Case(f"{rule}_{attack}", *QUICK_SIZES[0], attack, rule)
        for rule in ("gm", "multi_krum")
        for attack in SEARCHED
    ]
    if not quick:
        found.append(Case("cnn_cifar", 16, 1, "sf", model="cnn_cifar"))
        found.append(Case("resnet18", 7, 2, "sf", model="resnet18"))
    return found


@dataclass(frozen=True)
class Row:
    """Steps of one case; times in seconds, medians; ratios from turns that ran back to back."""

    name: str
    model: str
    honest: int
    f: int
    batch_size: int
    attack: str
    rule: str
    gradient_method: str
    """How our per-worker gradients were computed."""
    turns: int
    floor: float
    floor_method: str
    ours: float
    uncompiled: float
    """Ours in plain torch, with the gradients computed in the way that is then the fastest."""
    by_hand: float
    """The same step as a researcher would write it in plain torch."""
    byzfl: float | None
    over_floor: float
    over_floor_low: float
    over_floor_high: float
    over_floor_goal: float | None
    ahead_of_hand: float
    ahead: float | None
    ahead_low: float | None
    ahead_high: float | None
    ahead_goal: float | None

    @property
    def n(self) -> int:
        return self.honest + self.f

    @property
    def where(self) -> str:
        server = "" if self.rule == "cwtm" else f" on {self.rule}"
        model = "" if self.model == MODEL else f"{self.model}, "
        return f"{model}{self.attack}{server} at n={self.n}"

    @property
    def over(self) -> Ratio:
        return Ratio(self.over_floor, self.over_floor_low, self.over_floor_high)

    @property
    def before(self) -> Ratio | None:
        """How many times as long ByzFL takes."""
        if self.ahead is None or self.ahead_low is None or self.ahead_high is None:
            return None
        return Ratio(self.ahead, self.ahead_low, self.ahead_high)


@dataclass(frozen=True)
class TrackingCost:
    """A tracked run on a real store, beside the same run untracked; times in seconds."""

    steps: int
    run: float
    metrics: float
    """What writing metrics took of the run."""
    share: float
    untracked: float


def goals(rows: list[Row], cost: TrackingCost | None) -> dict[str, bool | str]:
    """What a full run should show; only what was measured is judged."""
    found: dict[str, bool | str] = {}
    for row in rows:
        if row.over_floor_goal is not None:
            goal = f"{row.where}: at most {row.over_floor_goal:g}× the floor"
            found[goal] = row.over.verdict(row.over_floor_goal, "≤")
        if row.before is not None and row.ahead_goal is not None:
            goal = f"{row.where}: at least {row.ahead_goal:g}× as fast as byzfl"
            found[goal] = row.before.verdict(row.ahead_goal, "≥")
    if cost is not None:
        found[f"tracking: at most {TRACKING_SHARE:.0%} of a run"] = cost.share <= TRACKING_SHARE
    return found


def read(content: dict[str, Any]) -> tuple[list[Row], TrackingCost | None]:
    """The rows of a file that an earlier run has written."""
    cost = content.get("tracking")
    return [Row(**row) for row in content["rows"]], TrackingCost(**cost) if cost else None


def merged(before: list[Row], now: list[Row]) -> list[Row]:
    """Earlier rows and new ones, which replace those of the same case."""
    found = {(row.name, row.n): row for row in (*before, *now)}
    return list(found.values())


def plain(cost: TrackingCost | None) -> dict[str, Any] | None:
    """For a file."""
    return None if cost is None else asdict(cost)
