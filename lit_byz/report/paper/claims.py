"""The paper's claims as data, and what tracked runs say of them."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lit_byz.config import sources
from lit_byz.errors import BadRequest
from lit_byz.report.paper.measures import Measured, matching, measure
from lit_byz.report.paper.survey import Survey
from lit_byz.report.paper.words import attack_word

RELATIONS = ("above", "below", "about")
QUANTITIES = (
    *("worst_case", "max_accuracy", "last_accuracy"),
    *("threshold_trend", "threshold_follows"),
)
# Quantities that are shares, shown in per cent.
SHARES = ("worst_case", "max_accuracy", "last_accuracy")
KEYS = {
    *("id", "place", "says", "paper", "experiment", "where", "against", "each", "attack"),
    *("quantity", "tolerance", *RELATIONS),
}
REPRODUCED, NOT_REPRODUCED, UNDECIDED = "reproduced", "not reproduced", "not enough runs"
# Tolerance of a printed mean ± std: at least this, and so many times the std.
LEAST, TIMES_STD = 0.03, 2.0


@dataclass(frozen=True)
class Claim:
    """One claim: a quantity of some cells, how it relates to a value, and where that is said."""

    id: str
    place: str
    says: str
    paper: str
    experiment: str
    relation: str
    value: float
    tolerance: float
    where: Mapping[str, Any] = field(default_factory=dict)
    against: Mapping[str, Any] | None = None
    quantity: str = "worst_case"
    attack: str | None = None

    def measured(self, found: Survey, strength: str) -> Measured | None:
        """Its quantity against attackers of a strength, over the complete seeds if there are any.

        Nothing where the runs are a smoke test: whatever they show, it is not what the paper says.
        """
        if found.experiment.smoke:
            return None
        one = measure(found, self.where, self.quantity, self.attack, strength)
        if one is None or self.against is None:
            return None if one is None else one.settled()
        other = measure(found, self.against, self.quantity, self.attack, strength)
        # Paired first: a seed counts where both sides have it.
        difference = None if other is None else one.minus(other)
        return difference.settled() if difference is not None and difference.by_seed else None

    def verdict(self, measured: Measured | None) -> str:
        """Decided only where every value that is possible decides it in the same way."""
        if measured is None or not measured.by_seed:
            return UNDECIDED
        verdicts = {self._holds(measured.low), self._holds(measured.high)}
        if len(verdicts) > 1 or (self.relation == "about" and self._straddles(measured)):
            return UNDECIDED
        return REPRODUCED if verdicts == {True} else NOT_REPRODUCED

    def _holds(self, value: float) -> bool:
        if self.relation == "above":
            return value >= self.value - self.tolerance
        if self.relation == "below":
            return value <= self.value + self.tolerance
        return abs(value - self.value) <= self.tolerance

    def _straddles(self, measured: Measured) -> bool:
        """Whether the interval holds all of the range that is allowed."""
        return (
            measured.low < self.value - self.tolerance
            and self.value + self.tolerance < measured.high
        )

    def shown(self, measured: Measured | None) -> str:
        """What was measured, with its spread and number of seeds, and those begun if more are."""
        if measured is None or not measured.by_seed:
            return ""
        scale, unit = (100.0, " %") if self.quantity in SHARES else (1.0, "")
        if self.against is not None and unit:
            unit = " points"
        digits = 1 if unit else 2
        if measured.exact:
            text = f"{scale * measured.high:.{digits}f}"
            if measured.seeds > 1:
                text += f" ± {scale * measured.std:.{digits}f}"
        elif measured.low <= 0 and self.against is None:
            text = f"≤ {scale * measured.high:.{digits}f}"
        else:
            text = f"{scale * measured.low:.{digits}f} to {scale * measured.high:.{digits}f}"
        more = f", {measured.begun} begun" if measured.left_out else ""
        return f"{text}{unit} ({measured.seeds}){more}"

    @property
    def allowed(self) -> str:
        """The values that count as reproduced."""
        scale = 100.0 if self.quantity in SHARES else 1.0
        value, tolerance = scale * self.value, scale * self.tolerance
        if self.relation == "above":
            return f"≥ {value - tolerance:g}"
        if self.relation == "below":
            return f"≤ {value + tolerance:g}"
        return f"{value - tolerance:g} to {value + tolerance:g}"


def load_claims() -> list[Claim]:
    """All claims of ``configs/paper/claims.yaml``."""
    path = sources.find("paper", "claims")
    if path is None:
        raise BadRequest("configs/paper/claims.yaml is missing")
    content = sources.load(path).content
    claims = [claim for entry in content.get("claims", []) for claim in claims_of(entry)]
    claims += [claim for table in content.get("tables", []) for claim in _of_table(table)]
    known = [claim.id for claim in claims]
    for name in known:
        if known.count(name) > 1:
            raise BadRequest(f"{path}: the claim {name} is there twice")
    return claims


def claims_of(entry: Mapping[str, Any]) -> Iterator[Claim]:
    """The claims that one entry of the file stands for."""
    name = entry.get("id", "?")
    unknown = set(entry) - KEYS
    if unknown:
        raise BadRequest(f"claim {name}: unknown key '{min(unknown)}'")
    relations = [relation for relation in RELATIONS if relation in entry]
    if len(relations) != 1:
        raise BadRequest(f"claim {name}: needs one of {', '.join(RELATIONS)}")
    if entry.get("quantity", "worst_case") not in QUANTITIES:
        raise BadRequest(f"claim {name}: unknown quantity '{entry['quantity']}'")
    plain = {k: v for k, v in entry.items() if k not in ("each", *RELATIONS)}
    each = entry.get("each", {})
    for values in itertools.product(*each.values()):
        chosen = dict(zip(each, values, strict=True))
        attack = chosen.pop("attack", None)
        made = dict(plain)
        made["where"] = {**chosen, **entry.get("where", {})}
        if "against" in entry:
            made["against"] = {**_common(chosen, entry["against"]), **entry["against"]}
        words = [_shown(key, value) for key, value in chosen.items()]
        if attack is not None:
            made["attack"] = attack
            words.append(attack_word(attack))
        if words:
            made["id"] = "-".join([name, *(str(v) for v in values)])
            made["says"] = f"{entry['says']} ({', '.join(words)})"
        yield Claim(relation=relations[0], value=float(entry[relations[0]]), **made)


def _common(chosen: Mapping[str, Any], against: Mapping[str, Any]) -> dict[str, Any]:
    """What both sides of a comparison share; DSGD has neither rule nor f."""
    if against.get("workers.f") == 0:
        return {key: value for key, value in chosen.items() if key not in ("rule", "workers.f")}
    return dict(chosen)


def _of_table(table: Mapping[str, Any]) -> Iterator[Claim]:
    for row, numbers in zip(table["rows"], table["values"], strict=True):
        for column, (mean, std) in zip(table["columns"], numbers, strict=True):
            where = {**row, **column}
            attack = where.pop("attack", None)
            words = [_shown(key, value) for key, value in where.items()]
            words += [attack_word(attack)] if attack else []
            values = [*row.values(), *column.values()]
            yield Claim(
                id="-".join([table["place"].replace(" ", "").lower(), *map(str, values)]),
                place=table["place"],
                says=", ".join(words),
                paper=f"{mean:g} ± {std:g} %",
                experiment=table["experiment"],
                relation="about",
                value=mean / 100,
                tolerance=max(LEAST, TIMES_STD * std / 100),
                where=where,
                quantity=table.get("quantity", "worst_case"),
                attack=attack,
            )


def _shown(key: str, value: Any) -> str:
    from lit_byz.report.paper.words import RULES

    names = {"workers.f": "f", "model.init_scale": "μ", "partition.alpha": "α", "clip.C": "C"}
    if key in names:
        return f"{names[key]} = {value:g}"
    if key == "rule":
        return RULES.get(value, str(value))
    return {"none": "no clipping", "arc": "ARC", "static": "static"}.get(value, str(value))


def unmatched(claim: Claim, found: Survey) -> list[Mapping[str, Any]]:
    """The settings of a claim that no cell of its experiment has: slips in the claim."""
    sides = [claim.where] if claim.against is None else [claim.where, claim.against]
    return [side for side in sides if not matching(found, side)]
