"""Every command that README, help texts and experiment files show does what is typed."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from tests.tracking._stores import new_store

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(r"python pipelines/(\w+)\.py([^`\n#]*)")
# What stands for something else: a name, an id, a list to be completed.
PLACEHOLDERS = re.compile(r"NAME|RUN_ID|DIR\b|PATH\b|…|\[--|elsewhere")
MANY_RUNS = ("sweep", "tune", "init_scaling", "breakdown")
SOURCES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "lit_byz" / "cli").glob("*.py")),
    *sorted((ROOT / "configs" / "experiment").glob("**/*.yaml")),
]


def documented() -> list[str]:
    """The commands, each once; what follows two spaces in a help text is an explanation."""
    found = []
    for source in SOURCES:
        for name, rest in COMMAND.findall(source.read_text(encoding="utf-8")):
            words = re.split(r"\s{2,}|\)|\"|;", rest)[0].strip()
            line = f"{name} {words}".strip()
            if not PLACEHOLDERS.search(line) and "|" not in line:
                found.append(line)
    return list(dict.fromkeys(found))


def on_embedded_data(line: str) -> bool:
    """Whether a command needs nothing that is downloaded."""
    return not re.search(r"mnist|cifar", line)


def call(line: str, *more: str) -> int:
    name, *words = shlex.split(line)
    main = importlib.import_module(f"pipelines.{name}").main
    return int(main([*(word for word in words if word != "--dry-run"), *more]))


COMMANDS = documented()
# The catalogue's experiments have thousands of runs: their files are looked at as smoke tests, and
# one of each kind is computed by tests/report/paper/test_smoke.py.
COMMANDS = [f"{line} scale=smoke" if "=paper/" in line else line for line in COMMANDS]
STUDIES = [c for c in COMMANDS if c.split()[0] in MANY_RUNS and "=paper/" not in c]


def test_there_are_commands_of_every_kind() -> None:
    assert {line.split()[0] for line in COMMANDS} >= {"train", "data", "report", *MANY_RUNS}
    assert len(COMMANDS) >= 20


@pytest.mark.parametrize("line", [c for c in COMMANDS if c.split()[0] in ("train", *MANY_RUNS)])
def test_settings_are_taken(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Composed and checked, nothing computed; what is printed is read back as the same."""
    monkeypatch.chdir(tmp_path)
    assert call(line, "--print-config") == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    (tmp_path / "printed.yaml").write_text(printed)
    options = [word for word in shlex.split(line)[1:] if word.startswith("--") and "=" not in word]
    kept = [word for word in options if word in ("--declared", "--full")]
    again = f"{line.split(maxsplit=1)[0]} config=printed.yaml {' '.join(kept)}"
    assert call(again, "--print-config") == 0, capsys.readouterr().err
    assert capsys.readouterr().out == printed
    assert not (tmp_path / "mlruns").exists()


def dry_run(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(folder)
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
