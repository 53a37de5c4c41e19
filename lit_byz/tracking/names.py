"""What runs and their parts are called."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig

from lit_byz.config.components import GROUPS
from lit_byz.config.grid import Point
from lit_byz.config.labels import attack_name, shown

# MLflow takes longer names, and its pages show them cut.
LONGEST = 250
BETWEEN = " · "


def label(config: DictConfig) -> str:
    """A run in a few words."""
    parts = [config.dataset.name, partition_name(config.partition), workers_name(config)]
    parts += [rule_name(config), f"clip {clip_name(config.clip)}", attack_name(config)]
    return ", ".join([*parts, f"seed {config.seed}"])


def in_common(configs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the runs of a study have in common, for its titles.

    Every data set and every partition is named; the number of honest workers is None if it varies,
    and the ``cell`` in words leaves out whatever does.
    """
    every = list(configs)
    found = [
        (
            config["dataset"]["name"],
            partition_name(config["partition"]),
            f"f={config['workers']['f']}",
            rule_name(config),
            config["workers"]["honest"],
        )
        for config in every
    ]
    *parts, honest = (list(dict.fromkeys(values)) for values in zip(*found, strict=True))
    parts[2:3] = [parts[2], *([f"{key}={f}"] for key, f in declared(every).items())]
    return {
        "dataset": " and ".join(parts[0]),
        "partition": " and ".join(parts[1]),
        "honest": honest[0] if len(honest) == 1 else None,
        "cell": ", ".join(values[0] for values in parts if len(values) == 1),
    }


def declared(configs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What the server, or a part of it, takes f for in all of these, where that is not what it is.

    By its key: ``server.f``, which follows ``workers.f``, and those of its parts, which follow it.
    """
    found = {}
    for section in ("server", "clip", "mix", "rule"):
        above = "workers" if section == "server" else "server"
        pairs = {(c[section].get("f"), c[above]["f"]) for c in configs if "f" in c[section]}
        values = {f for f, _ in pairs}
        if len(values) == 1 and any(f != real for f, real in pairs):
            found[f"{section}.f"] = int(values.pop())
    return found


def workers_name(config: Mapping[str, Any]) -> str:
    """How many Byzantine workers there are, and are taken to be where that is another number."""
    parts = [f"f={config['workers']['f']}"]
    return ", ".join([*parts, *(f"{key}={f}" for key, f in declared([config]).items())])


def run_name(config: DictConfig) -> str:
    """A single run as MLflow lists it: what one changes most often comes first."""
    parts = [attack_name(config), f"seed {config.seed}", _option("clip", clip_name(config.clip))]
    data = f"{config.dataset.name} {partition_name(config.partition)}"
    return BETWEEN.join([*parts, rule_name(config), data, workers_name(config)])[:LONGEST]


def name_in_study(point: Point) -> str:
    """A run of a study as MLflow lists it: attack and seed, then what tells its cell apart.

    The group of an option, and the section of a key, are left out where that is clear.
    """
    cell = brief({k: v for k, v in point.values.items() if k.partition(".")[0] not in INNER})
    parts = [point.attack, f"seed {point.seed}", cell if point.title is None else point.title]
    return BETWEEN.join(part for part in parts if part)[:LONGEST]


INNER = ("attack", "seed")


def brief(values: Mapping[str, Any]) -> str:
    """The values of axes in a few words."""
    last = [key.rpartition(".")[2] for key in values]
    words = []
    for key, value in values.items():
        end = key.rpartition(".")[2]
        if key in GROUPS:
            words.append(_option(key, shown(value)))
        else:
            words.append(f"{end if last.count(end) == 1 else key}={shown(value)}")
    return ", ".join(words)


def _option(group: str, name: str) -> str:
    return f"no {group}" if name == "none" else name


def partition_name(partition: Mapping[str, Any]) -> str:
    """A partition with its degree of heterogeneity."""
    degree = [f"{partition[key]:g}" for key in ("alpha", "gamma") if key in partition]
    return " ".join([partition["name"], *degree])


def rule_name(config: Mapping[str, Any]) -> str:
    """A rule and what comes before it."""
    rule, mix = config["rule"]["name"], config["mix"]["name"]
    return str(rule) if mix == "none" else f"{rule}∘{mix}"


def clip_name(clip: Mapping[str, Any]) -> str:
    """A clip, with its threshold if it is static."""
    threshold = clip.get("C") if clip["name"] == "static" else None
    return str(clip["name"]) if threshold is None else f"static {threshold:g}"
