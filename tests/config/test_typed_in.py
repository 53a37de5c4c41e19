"""Classes that were typed into a session: what they hold counts, and the modules that they use."""

import array
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lit_byz.config.typed_in import made_of


def session(**names: Any) -> tuple[Any, ModuleType]:
    """A class that uses names of a session."""
    here = ModuleType("a_session")
    vars(here).update(names)
    exec(f"class Mine:\n    def of(self):\n        return [{', '.join(names)}]", vars(here))
    return vars(here)["Mine"], here


class Slots:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = np.zeros(3)


def test_what_objects_of_a_session_hold_counts() -> None:
    table, slots = pd.DataFrame(np.zeros((200, 90))), Slots()
    kind, here = session(table=table, slots=slots, row=deque([np.zeros(5000)]))
    before = made_of(kind, here)
    assert made_of(kind, here) == before
    table.iloc[50, 50] = -3
    second = made_of(kind, here)
    slots.value[1] = 2
    third = made_of(kind, here)
    vars(here)["row"][0][2500] = 1
    assert len({text for text, _ in (before, second, third, made_of(kind, here))}) == 4


def test_objects_that_are_hard_to_look_at() -> None:
    sparse = torch.eye(3).to_sparse()
    kind, here = session(a=array.array("d", [2.0]), b=sparse, c=threading.Lock())
    before, modules = made_of(kind, here)
    assert "torch" in modules
    vars(here)["a"][0] = 3.0
    assert made_of(kind, here)[0] != before


TYPED = """
import lit_byz
import further, used
from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify, refuse_changed
from lit_byz.robust import Rule

class Mine(Rule):
    def aggregate(self, x):
        return used.K * x.mean(0)

def tell():
    plain = compose_plain(["rule=__main__.Mine"])
    refuse_changed([plain])
    return identify(plain).digest

before = tell()
open("further.py", "a").write("another = 1")
assert tell() == before
open("used.py", "a").write("another = 1")
try:
    tell()
except lit_byz.errors.BadRequest as error:
    print(error)
deep = []
for _ in range(5000):
    deep = [deep]
class Mine(Rule):
    def aggregate(self, x):
        return deep
try:
    tell()
except lit_byz.errors.BadRequest as error:
    print(error)
"""


@pytest.mark.slow
def test_a_session_depends_on_the_modules_that_its_class_uses(tmp_path: Path) -> None:
    (tmp_path / "further.py").write_text("K = 1\n")
    (tmp_path / "used.py").write_text("K = 1\n")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-"],
        input=f"import sys; sys.path[:0] = [{root!r}, '.']\n{TYPED}",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    changed, deep = done.stdout.splitlines()
    assert "used.py: changed since it was imported here" in changed
    assert "__main__.Mine: what it uses of this session cannot be told (RecursionError" in deep
