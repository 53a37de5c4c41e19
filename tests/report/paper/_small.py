"""A paper of one's own, on the embedded digits: an experiment of every kind, in seconds."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.report import main as report
from pipelines.sweep import main as sweep
from tests.tracking._stores import new_store

BASE: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "tracking": {"figures": False},
    "rule": "cwtm",
    "workers": {"honest": 6, "f": 1, "batch_size": 8},
    "train": {"steps": 12, "eval_every": 4, "checkpoint_every": 0},
}
SEARCHED = ["foe@coarse", "foe"]
DSGD = {"workers.f": 0, "rule": "average", "mix": "none", "clip": "none", "attack": "none"}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "lines": {
        "paper": {"kind": "worst_case", "x": "workers.f"},
        "axes": {"workers.f": [1, 2], "rule": ["cwtm", "gm"], "clip": ["none", "arc"]},
        "also": [{**DSGD, "seed": [1, 2]}],
    },
    "bars": {
        "paper": {"kind": "worst_case", "form": "bars", "x": "partition", "panels": ["rule"]},
        "axes": {
            "rule": ["cwtm"],
            "partition": ["extreme", {"name": "dirichlet", "alpha": 1}],
            "clip": ["none", {"name": "static", "C": 0.5}, "arc"],
        },
    },
    "table": {
        "paper": {"kind": "worst_case", "form": "table", "x": "rule"},
        "axes": {"rule": ["cwtm", "gm"], "clip": ["none", "arc"]},
    },
    "curves": {
        "paper": {"kind": "accuracy", "panels": ["attack"]},
        "axes": {"rule": ["cwtm", "gm"], "clip": ["none", "arc"]},
        "also": [{**DSGD, "seed": [1, 2]}],
    },
    "thresholds": {
        "paper": {"kind": "thresholds", "panels": ["attack"]},
        "axes": {"clip": ["arc"]},
    },
    "attacks": {
        "paper": {"kind": "attacks", "form": "table"},
        "axes": {"clip": ["none", "arc"]},
    },
    "gain": {
        "paper": {"kind": "gain", "x": "workers.f", "y": "partition", "panels": ["rule"]},
        "axes": {
            "partition": ["extreme"],
            "workers.f": [1, 2],
            "rule": ["cwtm", "gm"],
            "clip": ["none", "arc"],
        },
    },
}
CLAIMS: dict[str, Any] = {
    "claims": [
        {
            "id": "learns",
            "place": "Figure 1",
            "says": "DSGD learns",
            "paper": "> 0 %",
            "experiment": "paper/lines",
            "where": {"workers.f": 0},
            "above": 0.05,
            "tolerance": 0.0,
        },
        {
            "id": "perfect",
            "place": "Figure 1",
            "says": "perfect",
            "paper": "100 %",
            "experiment": "paper/lines",
            "each": {"rule": ["cwtm", "gm"]},
            "where": {"workers.f": 1, "clip": "none"},
            "about": 1.0,
            "tolerance": 0.0,
        },
        {
            "id": "three",
            "place": "Figure 1",
            "says": "undecided",
            "paper": "?",
            "experiment": "paper/bars",
            "where": {"clip": "static", "partition": "extreme"},
            "above": 0.5,
            "tolerance": 0.0,
        },
    ]
}


def furnish(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalogue, its claims and an empty store; the working directory from now."""
    experiments = folder / "configs" / "experiment" / "paper"
    experiments.mkdir(parents=True)
    for name, entry in EXPERIMENTS.items():
        section = {"place": f"Figure {name}", "shows": f"{name} & more.", **entry["paper"]}
        grid: dict[str, Any] = {"axes": {**entry["axes"], "attack": SEARCHED, "seed": [1, 2]}}
        if "also" in entry:
            grid["also"] = entry["also"]
        content = {"paper": {**section, "seconds": 1}, **BASE, "grid": grid}
        (experiments / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    (folder / "configs" / "paper").mkdir()
    (folder / "configs" / "paper" / "claims.yaml").write_text(yaml.safe_dump(CLAIMS))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(folder / "mlruns"))
    return folder


def compute(*settings: str) -> int:
    return int(sweep([*settings, "--executor", "inline", "--progress", "none", "--json"]))


def draw(*words: str) -> int:
    return int(report(list(words)))
