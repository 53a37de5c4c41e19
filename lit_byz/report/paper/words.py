"""Settings as the paper writes them."""

from collections.abc import Mapping
from typing import Any

from lit_byz.report import words

# The paper's abbreviations: its captions explain them.
RULES = {name: brief for name, (brief, _) in words.RULES.items()}
ATTACKS = {name: brief for name, (brief, _) in words.ATTACKS.items()}
# In the order of the paper's figures; CWMed and MK are drawn in panels of their own.
PAIRS = (("cwtm", "gm"), ("cwmed", "multi_krum"))
STRENGTHS = {
    "published": "attackers search as the authors' library does",
    "coarse": "attackers search as in the paper (20 factors)",
    "grid": "attackers search as hard as FOE and ALIE can",
    "span": "the strongest attackers found",
}
AXES = {
    "workers.f": "number of Byzantine workers $f$",
    "model.init_scale": r"factor of the initial parameters $\mu$",
    "partition": "heterogeneity",
    "rule": "aggregation",
}
UNITS = {"workers.f": "f = ", "model.init_scale": "μ = ", "workers.honest": "honest = "}


def rule_word(plain: Mapping[str, Any]) -> str:
    """The rule, which NNM goes before without a word, as in the paper."""
    name = plain["rule"]["name"]
    return RULES.get(name, str(name))


def clip_word(plain: Mapping[str, Any]) -> str:
    """How vectors are clipped."""
    clip = plain["clip"]
    if clip["name"] == "static":
        return f"C = {clip['C']:g}"
    return words.short("clip", str(clip["name"]))


def partition_word(plain: Mapping[str, Any]) -> str:
    """How heterogeneous the workers' data are."""
    partition = plain["partition"]
    if partition["name"] == "dirichlet":
        return f"α = {partition['alpha']:g}"
    return str(partition["name"])


def attack_word(label: str) -> str:
    """An attack's label without its strength.

    >>> attack_word("foe@coarse"), attack_word("sf")
    ('FOE', 'SF')
    """
    name = label.partition("@")[0]
    return ATTACKS.get(name, name)


def word(key: str, plain: Mapping[str, Any]) -> str:
    """The value that a config has of a key, for legends, titles and tables."""
    if key == "partition":
        return partition_word(plain)
    if key == "rule":
        return rule_word(plain)
    if key == "clip":
        return clip_word(plain)
    if key == "rules":
        for pair in PAIRS:
            if plain["rule"]["name"] in pair:
                return " and ".join(RULES[name] for name in pair)
        return rule_word(plain)
    value = looked_up(plain, key)
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{UNITS.get(key, '')}{shown}"


def looked_up(plain: Mapping[str, Any], key: str) -> Any:
    """``section.key`` of a config; a group stands for the name of its option."""
    value: Any = plain
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value["name"] if isinstance(value, Mapping) and "name" in value else value


def is_baseline(plain: Mapping[str, Any]) -> bool:
    """Whether a config is DSGD without Byzantine workers."""
    return bool(plain["workers"]["f"] == 0 and plain["rule"]["name"] == "average")
