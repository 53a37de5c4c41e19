"""What runs and their parts are called."""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from lit_byz.config.grid import attack_name


def label(config: DictConfig) -> str:
    """A run in a few words."""
    parts = [config.dataset.name, partition_name(config.partition), f"f={config.workers.f}"]
    parts += [rule_name(config), f"clip {clip_name(config.clip)}", attack_name(config)]
    return ", ".join([*parts, f"seed {config.seed}"])


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
    return f"static {clip['C']:g}" if clip["name"] == "static" else str(clip["name"])
