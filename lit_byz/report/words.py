"""What things are called in figures and tables: one table of names, short and in words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

# Short as the paper has it, and in words.
RULES: Mapping[str, tuple[str, str]] = {
    "average": ("average", "average"),
    "cwtm": ("CWTM", "trimmed mean (CWTM)"),
    "gm": ("GM", "geometric median (GM)"),
    "cwmed": ("CWMed", "median (CWMed)"),
    "multi_krum": ("MK", "Multi-Krum"),
    "krum": ("Krum", "Krum"),
    "meamed": ("MeaMed", "mean around the median (MeaMed)"),
    "mda": ("MDA", "minimum-diameter averaging (MDA)"),
    "smea": ("SMEA", "smallest-eigenvalue averaging (SMEA)"),
    "monna": ("MoNNA", "nearest to a pivot (MoNNA)"),
    "centered_clipping": ("CC", "centered clipping"),
    "caf": ("CAF", "covariance filter (CAF)"),
}
ATTACKS: Mapping[str, tuple[str, str]] = {
    "none": ("none", "no attack"),
    "sf": ("SF", "sign flipping"),
    "lf": ("LF", "label flipping"),
    "mimic": ("Mimic", "mimic"),
    "foe": ("FOE", "Fall of Empires"),
    "alie": ("ALIE", "A Little Is Enough"),
    "span": ("Span", "span"),
    "min_max": ("Min-Max", "min-max"),
    "min_sum": ("Min-Sum", "min-sum"),
    "gaussian": ("Gaussian", "Gaussian noise"),
    "zero": ("zero", "zero gradient"),
    "non_finite": ("Inf/NaN", "infinities and NaNs"),
}
CLIPS: Mapping[str, tuple[str, str]] = {
    "none": ("no clipping", "no clipping"),
    "arc": ("ARC", "adaptive robust clipping (ARC)"),
    "static": ("static", "static clipping"),
}
MIXES: Mapping[str, tuple[str, str]] = {
    "none": ("no mixing", "no mixing"),
    "nnm": ("NNM", "nearest-neighbour mixing (NNM)"),
    "bucketing": ("bucketing", "bucketing"),
}
PARTITIONS: Mapping[str, tuple[str, str]] = {
    "iid": ("iid", "iid"),
    "dirichlet": ("Dirichlet", "Dirichlet"),
    "extreme": ("extreme", "extreme heterogeneity"),
    "gamma": ("γ", "partly sorted"),
}
GROUPS = {
    "rule": RULES,
    "attack": ATTACKS,
    "clip": CLIPS,
    "mix": MIXES,
    "partition": PARTITIONS,
}
# How hard attackers search, beside the name of their attack.
SEARCHES = {"published": "published search", "coarse": "20 factors", "line": "line search"}
# Symbols of keys that have one.
SYMBOLS = {
    "clip.C": "C",
    "workers.f": "f",
    "server.f": "f̂",
    "partition.alpha": "α",
    "partition.gamma": "γ",
    "model.init_scale": "μ",
    "workers.honest": "honest workers",
    "train.lr": "learning rate",
    "train.momentum": "momentum β",
}
DEGREES = ("alpha", "gamma")
# What axes of figures are called, with the unit.
ACCURACY = "maximal test accuracy in %"
WORST_CASE = "worst-case maximal test accuracy in %"
STEPS = "steps of training"


def short(group: str, name: str) -> str:
    """The paper's abbreviation of an option."""
    return GROUPS[group].get(name, (name, name))[0]


def in_words(group: str, name: str, *, full: bool = False) -> str:
    """An option in words; a user's own class is called by its name.

    By its whole path where its name is that of an option of ours, or where ``full`` asks for it.

    >>> in_words("clip", "arc"), in_words("rule", "my_rules.Mine")
    ('adaptive robust clipping (ARC)', 'Mine')
    >>> in_words("rule", "my_rules.Krum"), in_words("rule", "my_rules.Mine", full=True)
    ('my_rules.Krum', 'my_rules.Mine')
    """
    options = GROUPS[group]
    if name in options:
        return options[name][1]
    last = name.rpartition(".")[2]
    ours = {word.casefold() for key, words in options.items() for word in (key, *words)}
    return name if full or not last or last.casefold() in ours else last


class InWords(Protocol):
    """What puts a name into words, in full where that is asked for."""

    def __call__(self, name: str, /, *, full: bool = False) -> str: ...


def told_apart(names: Sequence[str], words: InWords) -> list[str]:
    """Names in words; in full where two of them would read the same.

    >>> told_apart(["clip=arc", "rule=mine.Mean", "rule=yours.Mean"], cell_words)
    ['adaptive robust clipping (ARC)', 'mine.Mean', 'yours.Mean']
    """
    found = [words(name) for name in names]
    count = Counter(found)
    return [
        words(name, full=True) if count[label] > 1 else label
        for name, label in zip(names, found, strict=True)
    ]


def attack_words(label: str, *, full: bool = False) -> str:
    """An attack's label in words, with how hard it searches.

    >>> attack_words("foe@coarse"), attack_words("sf"), attack_words("foe, tau=2")
    ('Fall of Empires (20 factors)', 'sign flipping', 'Fall of Empires, tau = 2')
    >>> attack_words("foe(tau=2.5)")
    'Fall of Empires (tau = 2.5)'
    """
    name, *settings = re.split(r"(?=[,(])", label, maxsplit=1)
    name, at, search = name.partition("@")
    words = in_words("attack", name, full=full)
    if at:
        words += f" ({SEARCHES.get(search, search)})"
    return words + "".join(settings).replace("=", " = ").replace("(", " (", 1)


def cell_words(name: str, empty: str = "one cell", *, full: bool = False) -> str:
    """What tells a cell from the others, in words.

    >>> cell_words("clip=static, clip.C=0.2, workers.f=2")
    'static clipping, C = 0.2, f = 2'
    >>> cell_words("rule=cwtm, clip=arc"), cell_words("")
    ('trimmed mean (CWTM), adaptive robust clipping (ARC)', 'one cell')
    >>> cell_words("partition=dirichlet(alpha=0.1)")
    'Dirichlet (alpha = 0.1)'
    """
    # A value may have commas in brackets of its own.
    parts = re.split(r", (?=[A-Za-z_][\w.]*=)", name) if name else []
    return ", ".join(_part(part, full) for part in parts) or empty


def run_words(plain: Mapping[str, Any]) -> str:
    """A run in words, in two lines: where it is, and who is at work."""
    partition = plain["partition"]
    degree = [f"{SYMBOLS[f'partition.{k}']} = {partition[k]:g}" for k in DEGREES if k in partition]
    clip = in_words("clip", str(plain["clip"]["name"]))
    if "C" in plain["clip"]:
        clip += f", C = {plain['clip']['C']:g}"
    first = [str(plain["dataset"]["name"]), in_words("partition", str(partition["name"])), *degree]
    first += [f"{plain['workers']['honest']} honest workers, f = {plain['workers']['f']}"]
    rule, mix = in_words("rule", str(plain["rule"]["name"])), str(plain["mix"]["name"])
    second = [clip, *([] if mix == "none" else [short("mix", mix)]), rule]
    attack = plain["attack"]
    search = attack.get("search") if attack.get("tau") is None else None
    label = f"{attack['name']}@{search}" if search in SEARCHES else str(attack["name"])
    first.append(f"seed {plain['seed']}")
    return f"{', '.join(first)}\n{', '.join(second)}; {attack_words(label)}"


def _part(text: str, full: bool) -> str:
    key, equals, value = text.partition("=")
    if not equals:
        return text
    if key in GROUPS:
        name, bracket, settings = value.partition("(")
        words = in_words(key, name, full=full)
        return f"{words} ({settings.replace('=', ' = ')}" if bracket else words
    if key in ("dataset", "model"):
        return value
    return f"{SYMBOLS.get(key, key)} = {value}"


def legend_of_attacks(labels: Sequence[str]) -> str:
    """What abbreviations in a table's header stand for; "" where they are no abbreviations.

    >>> legend_of_attacks(["sf", "foe(tau=2)", "mimic", "foe@coarse"])
    'sf: sign flipping, foe: Fall of Empires'
    """
    names = dict.fromkeys(re.split("[,(@]", label, maxsplit=1)[0] for label in labels)
    told = {name: in_words("attack", name) for name in names if name in ATTACKS}
    return ", ".join(f"{name}: {words}" for name, words in told.items() if words != name)
