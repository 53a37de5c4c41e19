"""The source of a class that attackers take the server for is a part of a run's identity."""

import sys
from pathlib import Path

import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify

RULE = """
from dataclasses import dataclass
from lit_byz.robust import NoClip, Rule

@dataclass(frozen=True)
class Mine(Rule):
    f: int = 0

    def aggregate(self, x):
        return x.mean(0)

class MyClip(NoClip):
    pass
"""


@pytest.mark.parametrize(
    "assumed", ["assumed_rule=assumed_here.Mine", "assumed_clip=assumed_here.MyClip"]
)
def test_one_line_makes_another_run(
    assumed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "assumed_here.py"
    path.write_text(RULE)
    monkeypatch.syspath_prepend(tmp_path)
    asked = ["dataset=digits", "attack=foe", f"attack.{assumed}"]
    before = identify(compose_plain(asked))
    assert f"{assumed.partition('=')[2]} " in before.code
    path.write_text(f"{RULE}ANOTHER = 1\n")
    del sys.modules["assumed_here"]
    now = identify(compose_plain(asked))
    assert now.settings == before.settings
    assert now.code != before.code
    del sys.modules["assumed_here"]


def test_the_packages_own_change_nothing() -> None:
    """Runs that were computed before are found."""
    plain = identify(compose_plain(["attack=foe"]))
    assumed = identify(compose_plain(["attack=foe", "attack.assumed_rule=cwtm"]))
    assert assumed.code == plain.code
