"""``--print-config``: what is printed may be changed, and trains what the same words would."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lit_byz.cli import sweep, train
from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import points
from lit_byz.config.grid_source import read_grid

Capture = pytest.CaptureFixture[str]
SETTINGS = ["dataset=digits", "model=logreg", "attack=sf", "train.steps=20"]
CHANGES = [
    ["workers.f=3"],
    ["server.f=2"],
    ["train.lr=1.0", "train.local_steps=2"],
    ["train.momentum=0.5", "attack=lf"],
    ["model=resnet18"],
    ["rule=gm", "clip=none", "mix=none"],
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capsys: Capture, command: Any, *settings: str) -> str:
    assert command.main([*settings, "--print-config"]) == 0
    text = capsys.readouterr().out
    Path("printed.yaml").write_text(text)
    return text


@pytest.mark.parametrize("change", CHANGES)
def test_a_config_that_is_changed(capsys: Capture, change: list[str]) -> None:
    printed(capsys, train, *SETTINGS)
    assert compose_plain(["config=printed.yaml"]) == compose_plain(SETTINGS)
    assert compose_plain(["config=printed.yaml", *change]) == compose_plain([*SETTINGS, *change])


def test_what_was_set_stays(capsys: Capture) -> None:
    """A number that was typed is not taken for one that follows."""
    text = printed(capsys, train, *SETTINGS, "server.f=1", "rule.f=1", "train.loss=nll")
    written = yaml.safe_load(text)
    assert (written["server"]["f"], written["rule"]["f"], written["train"]["loss"]) == (1, 1, "nll")
    assert written["mix"]["f"] == "${server.f}"
    assert text.splitlines()[-1].startswith("# at present: clip.f = 1, mix.f = 1, train.local_lr")
    plain = compose_plain(["config=printed.yaml", "workers.f=3"])
    assert (plain["server"]["f"], plain["rule"]["f"], plain["mix"]["f"]) == (1, 1, 1)


@pytest.mark.parametrize("change", [*CHANGES[:3], ["workers.f=[1,3]"], ["rule=[gm,cwtm]"]])
def test_a_grid_that_is_changed(capsys: Capture, change: list[str]) -> None:
    typed = [*SETTINGS, "clip=[none,arc]", "attack=[sf,lf]", "workers.f=1"]
    printed(capsys, sweep, *typed)

    def identities(*settings: str) -> set[str]:
        return {point.identity for point in points(read_grid(settings, "none"))}

    assert identities("config=printed.yaml") == identities(*typed)
    assert identities("config=printed.yaml", *change) == identities(*typed, *change)
