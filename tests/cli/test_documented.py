"""Commands of documentation, help texts, examples and experiment files do what is typed.

Here those that take settings; tests/docs/test_commands.py has the others, and sees to it that no
command is without a test.
"""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from tests.cli._documented import ROOT, of_pipeline
from tests.tracking._stores import new_store

MANY_RUNS = ("sweep", "tune", "init_scaling", "breakdown")
# The catalogue's experiments have thousands of runs: their files are looked at as smoke tests, and
# one of each kind is computed by tests/report/paper/test_smoke.py.
COMMANDS = [
    f"{line} scale=smoke" if "=paper/" in line else line
    for line in of_pipeline("train", *MANY_RUNS)
    if "--help" not in line
]
STUDIES = [c for c in COMMANDS if c.split()[0] in MANY_RUNS and "=paper/" not in c]
# Names of a Slurm job, which its shell fills in.
IN_A_JOB = {"$first:$port": "10.0.0.1:6379"}


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own with the examples in it; what a command lets be imported ends with it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "")


def on_embedded_data(line: str) -> bool:
    """Whether a command needs nothing that is downloaded."""
    return not re.search(r"mnist|cifar", line)


def call(line: str, *more: str) -> int:
    name, *words = shlex.split(line)
    main = importlib.import_module(f"pipelines.{name}").main
    words = [IN_A_JOB.get(word, word) for word in words if word != "--dry-run"]
    return int(main([*words, *more]))


def test_there_are_commands_of_every_kind() -> None:
    assert {line.split()[0] for line in COMMANDS} == {"train", *MANY_RUNS}
    assert len(COMMANDS) >= 60
    assert any("examples." in line for line in COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_settings_are_taken(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Composed and checked, nothing computed; what is printed is read back as the same."""
    assert call(line, "--print-config") == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    (tmp_path / "printed.yaml").write_text(printed)
    options = [word for word in shlex.split(line)[1:] if word.startswith("--") and "=" not in word]
    kept = [word for word in options if word in ("--declared", "--full")]
    again = f"{line.split(maxsplit=1)[0]} config=printed.yaml {' '.join(kept)}"
    assert call(again, "--print-config") == 0, capsys.readouterr().err
    assert capsys.readouterr().out == printed
    assert not (tmp_path / "mlruns").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [c for c in COMMANDS if c.startswith("train") and "examples." in c]
)
def test_own_classes_are_trained(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In fewer steps than are typed."""
    short = re.sub(r"train\.steps=\d+", "train.steps=10", line)
    assert short != line
    code = call(short, "tracking.enabled=false", "train.eval_every=5")
    told = capsys.readouterr()
    assert code == 0, told.err
    assert "accuracy" in told.out + told.err


def dry_run(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    # By its full address: MLflow keeps one engine for each address of a process.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(folder))
    monkeypatch.setattr("lit_byz.execution.estimate.PATIENCE", 0.0)  # one kind of run is enough
    return call(line, "--dry-run")


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in STUDIES if on_embedded_data(line)])
def test_dry_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dry_run(line, tmp_path, monkeypatch) == 0, capsys.readouterr().err
    assert "runs" in capsys.readouterr().out


@pytest.mark.data
@pytest.mark.parametrize("line", [line for line in STUDIES if not on_embedded_data(line)])
def test_dry_runs_on_downloaded_data(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dry_run(line, tmp_path, monkeypatch) == 0, capsys.readouterr().err
    assert "runs" in capsys.readouterr().out
