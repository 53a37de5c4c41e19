"""What makes a run the same run: settings and code."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lit_byz._numerics import NUMERICS
from lit_byz.attacks import ALIE
from lit_byz.config.compose import compose, compose_plain
from lit_byz.config.identity import environment, identify, identity, of_callbacks
from lit_byz.training import DissimilarityLogger

ROOT = Path(__file__).parents[2]
TELL = """
import sys
from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify
found = identify(compose_plain(sys.argv[1:]))
print(found.settings)
print(found.code)
"""
ATTACK = """
import by_name
from by_value import RATE
from inside.part import scaled
from lit_byz.attacks import SignFlip

class Mine(SignFlip):
    rate = scaled(RATE)
"""
WATCH = """
from lightning.pytorch.callbacks import Callback

class Watch(Callback):
    pass
"""
FILES = {
    "stranger.py": "",
    "my_attack.py": ATTACK,
    "by_name.py": "import further\n",
    "by_value.py": "RATE = 1.0\n",
    "further.py": "",
    "inside/__init__.py": "",
    "inside/part.py": "from . import deepest\nfrom .numbers import FACTOR\n"
    "def scaled(x):\n    return FACTOR * x\n",
    "inside/deepest.py": "",
    "inside/numbers.py": "FACTOR = 2\n",
    "watching.py": WATCH,
}


def add_line(path: Path) -> None:
    path.write_text(f"{path.read_text()}ANOTHER = 1\n")


def test_what_changes_the_result_is_in_it() -> None:
    base = identity(compose())
    same = ["tracking.uri=sqlite:///x.db", "data.root=elsewhere", "data.test_batch_size=7"]
    same += ["resume=auto", "train.checkpoint_every=7", "trainer.accelerator=cpu"]
    same += ["workers.f=1", "server.f=1", "rule=cwtm", "train.gradients=auto"]
    for override in same:
        assert identity(compose([override])) == base, override
    other = ["seed=2", "rule=krum", "clip.zeta=1", "train.steps=5", "server.bound_output=true"]
    other += ["train.eval_every=7", "trainer.precision=64-true", "model.init_scale=2"]
    other += ["train.gradients=loop", "train.gradients=vmap", "attack=foe@published"]
    other += ["trainer.callbacks=[lit_byz.training.DissimilarityLogger]"]
    hashes = {identity(compose([override])) for override in other}
    assert len(hashes | {base}) == len(other) + 1
    assert len(base) == 64


def test_mis_specified_f_is_another_run() -> None:
    assert identity(compose(["server.f=2"])) != identity(compose(["workers.f=2"]))


# The settings of runs that were computed before ``attack.worker`` existed.
BEFORE_WORKERS = {
    "": "b4559a28ae131573e5a84801f357b3b298a039a40a822e6087b5c49afc83f57d",
    "dataset=digits attack.warmup=1 seed=4 workers.f=2": (
        "e379dda228e8f70c9ddb9e045ae4fd6e563be10e885c9e0aee9bab954c17cc77"
    ),
}


def test_a_key_that_came_later_leaves_earlier_runs_as_they_were() -> None:
    for settings, known in BEFORE_WORKERS.items():
        asked = ["attack=mimic", "trainer.accelerator=cpu", *settings.split()]
        assert identify(compose_plain(asked)).settings == known
        assert identify(compose_plain([*asked, "attack.worker=null"])).settings == known
        others = [identify(compose_plain([*asked, f"attack.worker={k}"])) for k in (0, 1)]
        assert len({known, *(other.settings for other in others)}) == 3


def test_a_run_that_begins_elsewhere_is_another_one() -> None:
    plain = compose_plain()
    assert identify(plain) == identify(plain, None)
    found = {identify(plain, origin).digest for origin in (None, "one file", "another file")}
    assert len(found) == 3
    assert identify(plain, "one file").code == identify(plain).code


def test_what_may_make_a_run_fail_is_told_apart() -> None:
    here = environment(compose_plain())
    for same in ("seed=2", "tracking.experiment=other", "train.steps=5"):
        assert environment(compose_plain([same])) == here
    for other in ("data.root=elsewhere", "trainer.accelerator=cpu", "data.test_batch_size=7"):
        assert environment(compose_plain([other])) != here


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with modules of a user's."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    forget(tmp_path)


def forget(folder: Path) -> None:
    """Have the modules of a folder imported anew."""
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]


USERS = ["attack=my_attack.Mine", "trainer.callbacks=[watching.Watch]"]


def test_one_line_of_the_users_code_makes_another_run(users: Path) -> None:
    """Of the class's own module, and of those that it imports, however it does."""
    before = identify(compose_plain(USERS))
    assert "my_attack.Mine " in before.code
    assert "watching.Watch " in before.code
    seen = {before.code}
    for name in FILES:
        add_line(users / name)
        forget(users)
        now = identify(compose_plain(USERS))
        assert now.settings == before.settings
        assert (now.code in seen) is (name == "stranger.py"), name
        assert (now.digest == before.digest) is (now.code == before.code)
        seen.add(now.code)


@pytest.mark.slow
def test_every_process_says_the_same(users: Path) -> None:
    paths = os.pathsep.join([str(ROOT), str(users)])
    done = subprocess.run(
        [sys.executable, "-c", TELL, *USERS],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=users,
        capture_output=True,
        text=True,
        check=True,
    )
    found = identify(compose_plain(USERS))
    assert done.stdout.splitlines() == [found.settings, found.code]


def test_callbacks_that_are_given_as_objects() -> None:
    from lightning.pytorch.callbacks import Callback

    class Rate(Callback):
        def __init__(self, rate: float) -> None:
            self.rate = rate

    class OtherRate(Rate):
        pass

    assert of_callbacks([]) == ""
    assert of_callbacks([DissimilarityLogger()]) == ""  # it looks on
    assert of_callbacks([Rate(1.0)]) == of_callbacks([Rate(1.0), DissimilarityLogger()])
    every = [[Rate(1.0)], [Rate(2.0)], [OtherRate(1.0)], [Rate(1.0), Rate(1.0)]]
    assert len({of_callbacks(callbacks) for callbacks in every}) == len(every)


def test_a_component_has_a_version_of_its_own() -> None:
    """What one attack computes otherwise than before leaves the runs of all others as they are."""
    alie, foe = (identify(compose_plain([f"attack={name}"])) for name in ("alie", "foe"))
    assert alie.code == f"numerics {NUMERICS}, alie {ALIE.numerics}"
    assert foe.code == f"numerics {NUMERICS}"


# Typed into a session: there is no file to compare.
SESSION = """
from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify
from lit_byz.robust import Rule

def tell():
    print(identify(compose_plain(["rule=__main__.Mine"])).digest)

scale = 1.0
def half(x):
    return x / 2
class Mine(Rule):
    def aggregate(self, x):
        return scale * half(x).mean(0)
tell()
class Mine(Rule):
    def aggregate(self, x):
        return scale * half(x).mean(0)
tell()
class Mine(Rule):
    def aggregate(self, x):
        return 2 * scale * half(x).mean(0)
tell()
def half(x):
    return x / 4
tell()
scale = 3.0
tell()

import numpy as np
import torch
from collections.abc import Callable
from dataclasses import dataclass, field

class Table:
    def __init__(self):
        self.rows = {"a": [half], "b": np.zeros(5000)}
    def at(self, place):
        return self.rows["b"][place]
table = Table()
table.rows["again"] = table
weights = torch.ones(5000)

@dataclass(frozen=True)
class Mine(Rule):
    power: float = 1.0
    places: list = field(default_factory=lambda: [2])
    look: Callable = table.at
    def aggregate(self, x):
        return x.mean(0) * weights[0] * self.look(self.places[0])
tell()
table.rows["b"][2500] = 1
tell()
weights[2500] = 2
tell()
def half(x):
    return x / 8
table.rows["a"] = [half]
tell()
Table.at = lambda self, place: 1.0
tell()

def other(x):
    return -x
chosen, known = half, [half, other]
class Mine(Rule):
    def aggregate(self, x):
        return known[0](x) + chosen(x)
tell()
chosen = other
tell()
"""


@pytest.mark.slow
def test_a_class_that_was_typed_into_a_session() -> None:
    """Defined anew it is the same or another one, by what it does and by what that is made of."""
    told = [
        subprocess.run(
            [sys.executable, "-"],
            input=SESSION,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    first, again, *others = told[0]
    assert first == again
    assert len({first, *others}) == 11
    assert told[1] == told[0]
