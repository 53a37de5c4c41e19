"""A user's own class is the one that was imported: whatever it imports, and whenever."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lit_byz
from lit_byz._imports import allow
from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify, refuse_other_code
from lit_byz.errors import BadRequest
from tests.config._own import RULE
from tests.tracking._stores import new_store

ROOT = Path(__file__).parents[2]
LATER = {
    "in a function": ("", "from helping import K"),
    "in a function, as a module": ("", "import helping; K = helping.K"),
    "where it may be missing": ("try:\n    from helping import K\nexcept ImportError: K = 1", ""),
    "in a function of another one": ("import between", "K = between.found()"),
    "in a part of a package": ("", "from parts.inner import K"),
}
BETWEEN = "def found():\n    from helping import K\n    return K\n"
NAMES = ("owned", "helping", "between", "parts", "parts.inner")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a rule and what it builds on, from which modules are imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "")
    (tmp_path / "parts").mkdir()
    for path, text in (
        ("owned.py", RULE.format(above="K = 1.0", inside="")),
        ("helping.py", "K = 1.0\n"),
        ("between.py", BETWEEN),
        ("parts/__init__.py", ""),
        ("parts/inner.py", "from helping import K\n"),
    ):
        (tmp_path / path).write_text(text)
    yield tmp_path
    for name in NAMES:
        sys.modules.pop(name, None)


def rewrite(path: Path, old: str, new: str) -> None:
    """Change a file at a later moment than its last change, as people do."""
    before = path.stat().st_mtime
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, (before + 5, before + 5))


def code_elsewhere(folder: Path) -> str:
    """What a process says that begins now."""
    tell = "from lit_byz.config import compose, identity\n"
    tell += "print(identity.identify(compose.compose_plain(['rule=owned.Mine'])).code)"
    path = os.pathsep.join([str(folder), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "LIT_BYZ_IMPORT": "owned"}
    return subprocess.run(
        [sys.executable, "-B", "-c", tell],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("above", "inside"), LATER.values(), ids=LATER.keys())
def test_what_is_imported_later_counts(above: str, inside: str, folder: Path) -> None:
    (folder / "owned.py").write_text(RULE.format(above=above, inside=inside))
    before = code_elsewhere(folder)
    assert code_elsewhere(folder) == before
    rewrite(folder / "helping.py", "1.0", "-1.0")
    assert code_elsewhere(folder) != before


@pytest.mark.parametrize(("above", "inside"), LATER.values(), ids=LATER.keys())
def test_whether_it_has_run_does_not_matter(above: str, inside: str, folder: Path) -> None:
    (folder / "owned.py").write_text(RULE.format(above=above, inside=inside))
    allow("owned.Mine")
    plain = compose_plain(["rule=owned.Mine"])
    before = identify(plain).code
    for name in NAMES:
        importlib.import_module(name)
    assert identify(plain).code == before


def settings(folder: Path) -> dict[str, Any]:
    small = {"dataset": "digits", "model": "logreg", "train.steps": 2, "train.eval_every": 2}
    own = {"rule": "owned.Mine", "attack": "sf", "mix": "none"}
    return {**small, **own, "tracking.uri": new_store(folder / "mlruns")}


@pytest.mark.parametrize("name", ["owned.py", "helping.py"])
@pytest.mark.parametrize("used", [True, False])
def test_a_file_that_has_changed_since_it_was_imported(
    used: bool, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of the two would be computed, nobody could say later."""
    monkeypatch.chdir(folder)
    rewrite(folder / "owned.py", "K = 1.0", "import helping\nK = 2.0")
    owned = importlib.import_module("owned")
    allow("owned.Mine")
    given = settings(folder)
    if used:
        assert lit_byz.train(given).status == "finished"
    rewrite(folder / name, "K =", "K = 3 *")
    for call in (lit_byz.train, lit_byz.sweep, lit_byz.tune):
        with pytest.raises(BadRequest, match=f"{name}: changed since it was imported here"):
            call(given)
    importlib.reload(sys.modules["helping"])
    importlib.reload(owned)
    assert lit_byz.train(given).status == "finished"


def test_a_process_with_other_code_computes_nothing(folder: Path) -> None:
    allow("owned.Mine")
    plain = compose_plain(["rule=owned.Mine"])
    code = identify(plain).code
    refuse_other_code(plain, code)
    refuse_other_code(plain, f"{code}, its data 12345678")
    refuse_other_code(compose_plain(["rule=cwtm"]), "numerics 0")  # which code says so itself
    for other in ("numerics 1, owned.Mine 12345678", f"{code}0"):
        with pytest.raises(BadRequest, match=r"owned\.Mine: the code here is not that with which"):
            refuse_other_code(plain, other)


@pytest.mark.slow
def test_a_file_that_changes_while_a_sweep_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that begin later import other code: what they would compute is nobody's result."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    above = "import pathlib\nK = 1.0"
    inside = "path = pathlib.Path(__file__)\n        "
    inside += "path.write_text(path.read_text().replace('K = 1.0', 'K = 2.0'))"
    (folder / "owned.py").write_text(RULE.format(above=above, inside=inside))
    allow("owned.Mine")
    given = {**settings(folder), "seed": [1, 2, 3, 4]}
    found = lit_byz.sweep(given, workers=1)
    assert list(found["failed"]) == [0]  # one process, which has what was planned
    importlib.invalidate_caches()
    with pytest.raises(BadRequest, match="changed since it was imported"):
        lit_byz.sweep({**given, "seed": [5]}, workers=1)
