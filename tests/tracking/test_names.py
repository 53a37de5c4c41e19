"""What runs are called: what varies comes first."""

from pathlib import Path
from typing import Any

import pytest

from lit_byz.config.compose import compose
from lit_byz.config.grid import Grid, points
from lit_byz.tracking.names import brief, in_common, label, name_in_study, run_name


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"clip": "arc"}, "arc"),
        ({"clip": "static", "clip.C": 0.2}, "static, C=0.2"),
        ({"clip": "none", "mix": "none"}, "no clip, no mix"),
        ({"workers.f": 2, "rule": "gm"}, "f=2, gm"),
        ({"workers.f": 2, "server.f": 1}, "workers.f=2, server.f=1"),
        ({"rule": {"name": "krum", "f": 2}}, "krum(f=2)"),
        ({}, ""),
    ],
)
def test_axes_in_a_few_words(values: dict[str, Any], expected: str) -> None:
    assert brief(values) == expected


def test_runs_of_a_study() -> None:
    axes = {"clip": ["none", "arc"], "attack": ["foe@coarse", "sf"], "seed": [1, 2]}
    found = points(Grid({"dataset": "digits"}, axes))
    assert name_in_study(found[0]) == "foe@coarse · seed 1 · no clip"
    assert name_in_study(found[-1]) == "sf · seed 2 · arc"
    assert len({name_in_study(point) for point in found}) == len(found)
    (single,) = points(Grid({"dataset": "digits", "attack": "sf"}, {"seed": [3]}))
    assert name_in_study(single) == "sf · seed 3"


def test_a_single_run(tmp_path: Path) -> None:
    config = compose(["dataset=digits", "clip=static", "clip.C=2", "attack=foe", "seed=4"])
    assert run_name(config).startswith("foe · seed 4 · static 2 · ")


def test_what_the_server_takes_f_for_is_a_part_of_the_name() -> None:
    """Runs that differ in it alone would be called the same."""
    usual = ["dataset=digits", "attack=sf", "workers.f=3"]
    for declared in ("server.f=1", "rule.f=1", "clip.f=2"):
        config = compose([*usual, declared])
        assert f", f=3, {declared}, cwtm∘nnm, " in label(config)
        assert run_name(config).endswith(f"f=3, {declared}")
        assert in_common([config, config])["cell"] == f"digits, extreme, f=3, {declared}, cwtm∘nnm"
    assert run_name(compose(usual)).endswith("f=3")
    assert label(compose([*usual, "server.f=3"])) == label(compose(usual))
