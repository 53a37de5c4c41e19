"""One door to all commands: what it says, where it leads, and that hints fit the door."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from lit_byz import __version__
from lit_byz._door import here, line, program, typed
from lit_byz.cli import door
from tests.cli._doors import ROOT, call, install, spent
from tests.tracking._stores import new_store

HEAVY = ("torch", "mlflow", "lightning", "omegaconf", "rich", "pandas", "numpy", "yaml")
SCRIPTS = [path.stem for path in (ROOT / "pipelines").glob("*.py") if path.stem != "__init__"]
SECRET = "not-to-be-seen"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("bin"))


def test_every_command_has_a_line_and_every_script_is_a_command() -> None:
    assert list(door.COMMANDS) == list(door.DESCRIPTIONS)
    assert {name.replace("_", "-") for name in SCRIPTS} <= set(door.COMMANDS)
    lines = door.usage().splitlines()
    for name, text in door.DESCRIPTIONS.items():
        assert f"  {name:<14}{text}" in lines
        assert len(text) < 80


@pytest.mark.parametrize("name", door.COMMANDS)
def test_every_command_is_there(name: str) -> None:
    assert callable(importlib.import_module(door.COMMANDS[name]).main)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_the_same_command(name: str) -> None:
    command = importlib.import_module(door.COMMANDS[name.replace("_", "-")])
    assert importlib.import_module(f"pipelines.{name}").main is command.main


def test_help_comes_at_once_and_imports_nothing_heavy(script: Path, tmp_path: Path) -> None:
    times = []
    for _ in range(3):  # others share caches and memory
        begin = spent()
        done = call([str(script), "--help"], tmp_path)
        times.append(spent() - begin)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("usage: lit-byz COMMAND")
        if times[-1] < 0.5:
            break
    assert min(times) < 0.5
    program = "import sys; from lit_byz.cli import door; door.main(['--help'])\n"
    program += f"print([name for name in {HEAVY} if name in sys.modules])"
    assert call([sys.executable, "-c", program], tmp_path).stdout.endswith("[]\n")


def test_a_module_is_the_same_door(script: Path, tmp_path: Path) -> None:
    """Also in that no file of the working directory hides an installed module."""
    (tmp_path / "yaml.py").write_text("raise SystemExit('hidden')")
    (tmp_path / "argparse.py").write_text("raise SystemExit('hidden')")
    wanted = (2, "", "error: unknown kind 'rulez': did you mean 'rules'?\n")
    for start in ([sys.executable, "-m", "lit_byz"], [str(script)]):
        done = call([*start, "list", "rulez"], tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == wanted


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["swep"], 2, "error: unknown command 'swep': did you mean 'sweep'?\n"),
        (["init_scaling"], 2, "error: unknown command 'init_scaling': did you mean"),
        (["--jsn"], 2, "error: unknown option '--jsn': a command comes first, then its options\n"),
        (["train", "atack=foe"], 2, "error: unknown key 'atack': did you mean 'attack'?\n"),
    ],
)
def test_what_is_misspelt(
    arguments: list[str], code: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert door.main(arguments) == code
    told = capsys.readouterr()
    assert told.err.startswith(shown)
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert door.main(["--version"]) == 0
    assert re.fullmatch(
        rf"lit-byz {re.escape(__version__)}, torch 2\.\S+, Python 3\.\S+\n", capsys.readouterr().out
    )


DOORS = {
    "lit-byz": ["/somewhere/bin/lit-byz", "sweep", "seed=1"],
    "python -m lit_byz": ["/somewhere/lit_byz/__main__.py", "sweep", "seed=1"],
    "script": [str(ROOT / "pipelines" / "sweep.py"), "seed=1"],
    "none": ["/somewhere/my_script.py", "x"],
}


@pytest.mark.parametrize("by", DOORS)
def test_commands_are_named_as_they_are_typed_here(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", DOORS[by])
    folder = ROOT / "pipelines"
    shown = here("python pipelines/init_scaling.py seed=[1]; as train.py does")
    if by == "script":
        assert shown == f"python {folder}/init_scaling.py seed=[1]; as train.py does"
        assert (program(), line("ui"))[0] == f"python {folder}/sweep.py"
        assert typed(["else"]) == f"python {folder}/sweep.py seed=1"
    else:
        start = "lit-byz" if by == "none" else by
        assert shown == f"{start} init-scaling seed=[1]; as {start} train does"
        assert program() == (None if by == "none" else f"{by} sweep")
        again = "python /somewhere/my_script.py else" if by == "none" else f"{by} sweep seed=1"
        assert typed(["else"]) == again


def test_what_was_typed_is_shown_without_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sweep", f"tracking.uri=postgresql://me:{SECRET}@nowhere/runs", "clip=[none,arc]"]
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/lit-byz", *words])
    shown = typed(())
    assert SECRET not in shown
    assert shown.startswith("lit-byz sweep ")
    assert shown.endswith(" 'clip=[none,arc]'")


@pytest.mark.parametrize("command", ["report", "cluster", "list"])
def test_help_names_the_door(script: Path, tmp_path: Path, command: str) -> None:
    shown = call([str(script), command, "--help"], tmp_path).stdout
    assert shown.startswith(f"usage: lit-byz {command} ")
    assert f"\nlit-byz {command} " in shown
    assert "pipelines" not in shown


def test_hints_name_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no checkout, and where the checkout's script was called."""
    store = f"tracking.uri={new_store(tmp_path)}"
    sweep = {"lit-byz": "lit-byz sweep", "script": f"python {ROOT / 'pipelines' / 'sweep.py'}"}
    for by, shown in sweep.items():
        monkeypatch.setattr(sys, "argv", DOORS[by])
        assert door.main(["report", store]) == 2
        line = f"error: there is no sweep and no study yet; {shown} makes one\n"
        assert capsys.readouterr().err == line
