"""What was loaded counts, in whatever way it was, and wherever a class was asked for."""

import importlib
import py_compile
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.callbacks import Callback

from lit_byz._imports import allow
from lit_byz._loaded import look_on
from lit_byz.config.as_typed import as_typed
from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify, of_callbacks, refuse_changed
from lit_byz.errors import BadRequest
from tests.config._own import RULE

NAMES = ("owned", "helping", "between", "parts", "parts.inner", "parts.owned", "watching")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the user's, from which modules are imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "owned,parts")
    yield tmp_path
    forget()


def forget() -> None:
    for name in NAMES:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


def write(folder: Path, **texts: str) -> None:
    """Files by their names, ``parts__inner`` for one in a package."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/', 1)}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def code(path: str = "owned.Mine") -> str:
    """What a class is made of, as far as a run's identity goes; nothing about it is wrong."""
    allow(path)
    plain = compose_plain([f"rule={path}"])
    refuse_changed([plain])
    return identify(plain).code


def refused(path: str = "owned.Mine") -> str:
    with pytest.raises(BadRequest) as caught:
        code(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_module_that_chooses_a_class_counts(folder: Path) -> None:
    both = RULE.format(above="K = 1", inside="")
    write(folder, between=both + both.replace("class Mine", "class Other").replace("K *", "-K *"))
    seen = set()
    for chosen in ("Mine", "Other"):
        write(folder, owned=f"from between import {chosen} as Mine  # one of two\n")
        forget()
        seen.add(code())
    assert len(seen) == 2


def test_a_class_made_by_a_function(folder: Path) -> None:
    lines = ["from lit_byz.robust import Rule", "def make(k):", "    class Made(Rule):"]
    lines += ["        def aggregate(self, x):", "            return k * x.mean(0)"]
    write(folder, between="\n".join([*lines, "    return Made"]))
    seen = set()
    for number in (1, -5):
        write(folder, owned=f"from between import make\nMine = make({number})\n")
        forget()
        seen.add(code())
    assert len(seen) == 2


def test_one_that_imports_what_was_reloaded_has_to_be_reloaded_too(folder: Path) -> None:
    """Its names are still those of the module before."""
    write(folder, helping="K = 1.0\n", between="from helping import K\n")
    write(folder, owned=RULE.format(above="from between import K", inside=""))
    before = code()
    write(folder, helping="K = -20.0\n")
    assert "helping.py: changed since it was imported here" in refused()
    importlib.reload(sys.modules["helping"])
    assert "between.py: loaded before helping was reloaded" in refused()
    importlib.reload(sys.modules["between"])
    assert "owned.py: loaded before helping was reloaded" in refused()
    importlib.reload(sys.modules["owned"])
    assert code() != before


@pytest.mark.parametrize("cached", [True, False])
def test_an_edit_before_the_first_use_is_noticed(
    cached: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever another process has made of Python's cache meanwhile."""
    monkeypatch.setattr(sys, "dont_write_bytecode", not cached)
    write(folder, owned=RULE.format(above="K = 1.0", inside=""))
    importlib.import_module("owned")
    write(folder, owned=RULE.format(above="K = -20.0", inside=""))
    if cached:
        py_compile.compile(str(folder / "owned.py"))
    assert "owned.py: changed since it was imported here" in refused()


@pytest.mark.parametrize(
    "above",
    [
        "K = 1e999 * 0  # not a number",
        "K = 1; text = '\\d'",
        "from parts import inner; K = inner.K",
        "from parts.inner import K",
        "import importlib; K = importlib.import_module('parts.inner').K",
    ],
)
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_what_has_not_changed_is_not_refused(above: str, folder: Path) -> None:
    write(folder, owned=RULE.format(above=above, inside=""), parts____init__="")
    write(folder, parts__inner="K = 1.0\n")
    before = code()
    assert code() == before
    forget()
    assert code() == before
    if "inner" in above:
        write(folder, parts__inner="K = 2.0\n")
        forget()
        assert code() != before


def test_what_is_written_in_a_package_counts(folder: Path) -> None:
    write(folder, parts____init__="", parts__inner="K = 1.0\n")
    write(folder, parts__owned=RULE.format(above="from .inner import K", inside=""))
    before = code("parts.owned.Mine")
    write(folder, parts____init__="from . import inner\ninner.K = -1.5\n")
    forget()
    assert code("parts.owned.Mine") != before


@pytest.mark.parametrize(
    "content",
    [b"K = 1.0", b"\xef\xbb\xbfK = 1.0\n", b"# coding: latin-1\nK = 1.0  # \xe9\n", b"K = 1.0\r\n"],
)
def test_a_text_is_the_same_before_and_after_it_is_loaded(content: bytes, folder: Path) -> None:
    write(folder, owned=RULE.format(above="", inside="from helping import K"))
    (folder / "helping.py").write_bytes(content)
    before = code()
    importlib.import_module("helping")
    assert code() == before


def test_modules_without_a_text(folder: Path) -> None:
    """Compiled, or in an archive and not loaded yet."""
    write(folder, owned=RULE.format(above="import helping", inside="from between import K"))
    seen = set()
    for number in (1, -1, 1):
        with zipfile.ZipFile(folder / f"all{len(seen)}.zip", "w") as archive:
            archive.writestr("between.py", f"K = {number}\n")
        sys.path.insert(0, str(folder / f"all{len(seen)}.zip"))
        write(folder, helping=f"K = {len(seen)}\n")
        py_compile.compile(str(folder / "helping.py"), str(folder / "helping.pyc"))
        (folder / "helping.py").unlink()
        forget()
        seen.add(code())
        sys.path.pop(0)
    assert len(seen) == 3


def test_callbacks_given_as_objects(folder: Path) -> None:
    text = "from lightning.pytorch.callbacks import Callback\nclass Watch(Callback):\n    K = 1\n"
    write(folder, watching=text)
    watching: Any = importlib.import_module("watching")
    callback = watching.Watch()
    before = of_callbacks([callback])
    refuse_changed([], [callback])
    write(folder, watching=text.replace("K = 1", "K = 200"))
    with pytest.raises(BadRequest, match=r"watching\.py: changed since it was imported here"):
        refuse_changed([], [callback])
    importlib.reload(watching)
    with pytest.raises(BadRequest, match=r"watching\.Watch: defined anew since"):
        refuse_changed([], [callback])
    refuse_changed([], [watching.Watch()])
    assert of_callbacks([watching.Watch()]) != before
    made = type("Made", (Callback,), {})
    refuse_changed([], [made()])


def test_a_class_that_has_lost_its_name_is_no_setting(folder: Path) -> None:
    write(folder, owned=RULE.format(above="K = 1.0", inside=""))
    owned: Any = importlib.import_module("owned")
    kind = owned.Mine
    assert as_typed({"rule": kind}) == ['rule="owned.Mine"']
    importlib.reload(owned)
    with pytest.raises(BadRequest, match=r"owned\.Mine is another class now"):
        as_typed({"rule": kind})
    assert as_typed({"rule": owned.Mine}) == ['rule="owned.Mine"']


def test_it_looks_on_once() -> None:
    before = list(sys.meta_path)
    look_on()
    assert sys.meta_path == before
