"""The catalogue: every figure and table of the paper as an experiment of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lit_byz._door import here
from lit_byz.config import sources
from lit_byz.config.components import GROUPS
from lit_byz.config.grid import Point, points
from lit_byz.config.grid_source import PAPER, read_grid
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

KINDS = ("worst_case", "accuracy", "thresholds", "attacks", "gain", "labels", "runtime")
FORMS = ("lines", "bars", "table")
# What is known of an experiment from elsewhere than its file's section.
NOT_OF_THE_SECTION = ("name", "settings", "steps")
# Kinds that are made without training.
WITHOUT_RUNS = ("labels", "runtime")


@dataclass(frozen=True)
class Experiment:
    """A figure or table: what the paper shows there, and the runs that it takes."""

    name: str
    place: str
    shows: str
    kind: str
    label: str = ""
    form: str = "lines"
    x: str = ""
    y: str = ""
    panels: Sequence[str] = ()
    seconds: float = 0.0
    """Of one run on one core, for where the store has no run that is like it."""
    timed: bool = True
    """Whether ``seconds`` were measured; else they are computed from a step's operations."""
    steps: int = 0
    """Of a run as the file has it, which takes ``seconds``."""
    pictures: Sequence[dict[str, Any]] = ()
    settings: Sequence[str] = field(default=())
    """What the command line changes about it."""

    @cached_property
    def points(self) -> list[Point]:
        """Its runs."""
        if self.kind in WITHOUT_RUNS:
            return []
        return points(read_grid([f"experiment={self.name}", *self.settings], "none"))

    @property
    def short(self) -> str:
        return self.name.rpartition("/")[2]

    @cached_property
    def smoke(self) -> bool:
        """Whether its runs are too short to mean anything."""
        return sources.parse(self.settings, GROUPS).content.get("scale") == "smoke"

    @property
    def command(self) -> str:
        """The line that computes it."""
        if self.kind == "labels":
            return here(f"python pipelines/report.py {self.name}")
        if self.kind == "runtime":
            return here("python pipelines/benchmark.py robust --only figure")
        words = ["python pipelines/sweep.py", f"experiment={self.name}", *self.settings]
        return here(" ".join(words))


def catalogue(settings: Sequence[str] = ()) -> list[Experiment]:
    """All experiments of the paper, in its order."""
    names = [name for name in sources.files("experiment") if name.startswith(f"{PAPER}/")]
    return sorted((find(name, settings) for name in names), key=_order)


def find(name: str, settings: Sequence[str] = ()) -> Experiment:
    """The experiment of a name such as ``paper/fig1a``."""
    found = sources.experiment(name)
    section = found.content.get(PAPER)
    if not isinstance(section, dict):
        options = [other for other in sources.files("experiment") if other.startswith(PAPER)]
        raise BadRequest(f"{name}: is no figure or table of the paper; {nearest(name, options)}")
    unknown = set(section) - (set(Experiment.__dataclass_fields__) - set(NOT_OF_THE_SECTION))
    missing = {"place", "shows", "kind"} - set(section)
    if unknown or missing:
        what = f"unknown key '{min(unknown)}'" if unknown else f"no key '{min(missing)}'"
        raise BadRequest(f"{found.prefix}{what} in {PAPER}")
    train = found.content.get("train")
    steps = train.get("steps", 0) if isinstance(train, dict) else 0
    experiment = Experiment(name=name, settings=tuple(settings), steps=steps, **section)
    for key, value, known in (("kind", experiment.kind, KINDS), ("form", experiment.form, FORMS)):
        if value not in known:
            hint = nearest(str(value), known)
            raise BadRequest(f"{found.prefix}{PAPER}.{key} = {value!r}: unknown; {hint}")
    return experiment


def _order(experiment: Experiment) -> tuple[int, int, str]:
    """Figures, then tables, each by number, then what the paper does not have."""
    kind, _, number = experiment.place.partition(" ")
    digits = "".join(c for c in number if c.isdigit())
    rank = {"Figure": 0, "Table": 1}.get(kind, 2)
    return rank, int(digits or 0), experiment.name
