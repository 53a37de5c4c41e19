"""Every command of the documentation has a test, or a reason why it has none.

tests/cli/test_documented.py has those that take settings, tests/docs/test_site.py `mkdocs build`.
"""

import gzip
import importlib
import json
import pydoc
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from lit_byz.cli import door
from lit_byz.cli.benchmark import BENCHMARKS
from lit_byz.cli.command import Parser
from tests.cli._documented import ROOT, SOURCES, commands, of, of_pipeline, ours
from tests.tracking._stores import new_store

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Commands that no test types as they stand, ours as ``lit-byz`` has them, by whichever door they
# are shown. What can be parsed of them is, below.
NOT_RUN = {
    "lit-byz benchmark": "minutes of measuring; tests/*/test_benchmark.py runs parts",
    "lit-byz cluster up": "servers; tests/cli/test_cluster.py starts and ends them",
    "lit-byz ui": "a server that stays; tests/cli/test_ui.py starts and ends it",
    "python docs/screenshot.py": "Chromium; tests/docs/test_screenshot.py takes the picture",
    "python -m tests.test_numerics": "writes committed results; tests/test_numerics.py reads them",
    "pip wheel": "minutes without a cache; tests/test_wheel.py builds and installs one",
    "pip install": "changes the environment; .ci/run installs, names of extras are checked",
    "pytest": "is what runs this; marks and folders are checked",
    "bash .ci/run": "is what runs this; its syntax is checked",
    "python .ci/transcript.py": "types all of these; tests/docs/test_transcript.py types some",
    "pre-commit install": "changes the clone",
    "mlflow ui": "a server that stays; tests/docs/test_screenshot.py starts one",
    "mlflow server": "a server on other machines; tests/services start their own",
    "ray start": "other machines; tests/cli/test_cluster.py starts nodes",
    "ray get-auth-token": "writes into the home folder",
    "srun": "Slurm; the script's syntax is checked",
    "sudo -u postgres": "the system's database",
    "ssh": "another machine",
    "apt-get install": "changes the system; .ci/run installs what tests need",
}
RUN = (
    *(f"lit-byz {name}" for name in ("train", "sweep", "tune", "init-scaling", "breakdown")),
    *(f"lit-byz {name}" for name in ("report", "evaluate", "data", "list", "completion")),
    *("lit-byz cluster status", "lit-byz cluster down"),
    *(f"python examples/{path.name}" for path in (ROOT / "examples").glob("*.py")),
    "python -m pydoc",
    "mkdocs build",
)
DOOR = ("lit-byz", "lit-byz --help", "lit-byz --version")  # and nothing behind them
NAMES = [name.replace("-", "_") for name in door.COMMANDS]


def call(line: str, *more: str) -> int:
    name, *words = shlex.split(line)
    return door.main([name.replace("_", "-"), *words, *more])


def by_the_door(command: str) -> str:
    """A command as it is, one of ours as ``lit-byz`` has it."""
    found = ours(command)
    if found is None:
        return command.replace("python -m lit_byz", "lit-byz")
    return f"lit-byz {found[0].replace('_', '-')} {found[1]}".strip()


def is_one_of(command: str, begins: Iterable[str]) -> bool:
    return any(f"{command} ".startswith(f"{begin} ") for begin in begins)


def test_every_command_is_run_or_has_a_reason() -> None:
    typed = {by_the_door(command): source.name for command, source in commands().items()}
    known = [c for c in typed if c in DOOR or is_one_of(c, [*RUN, *NOT_RUN])]
    assert {c: source for c, source in typed.items() if c not in known} == {}
    assert [begin for begin in NOT_RUN if not any(is_one_of(c, [begin]) for c in typed)] == []
    for command in typed:
        assert shlex.split(command)


def test_ours_are_there() -> None:
    """By the door that is shown, with a name that it knows."""
    for command in commands():
        found = ours(command)
        if found is not None:
            assert found[0].replace("_", "-") in door.COMMANDS, command
            if command.startswith("python pipelines/"):
                assert (ROOT / "pipelines" / f"{found[0]}.py").exists(), command


@pytest.mark.parametrize(
    "line", [line for line in of("lit-byz", "python -m lit_byz") if ours(line) is None]
)
def test_the_door_itself(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert door.main(shlex.split(by_the_door(line))[1:]) == 0
    assert "lit-byz" in capsys.readouterr().out


@pytest.mark.parametrize("line", [c for c in of_pipeline(*NAMES) if "--help" in c.split()])
def test_help(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call(line)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


@pytest.mark.parametrize(
    "line", [c for c in of_pipeline("list", "completion") if "--help" not in c.split()]
)
def test_lists_and_completions(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert call(line) == 0, capsys.readouterr().err
    told = capsys.readouterr().out
    if "--json" in line:
        assert json.loads(told) == {"entries": [], "left_out": 0}
    elif line.split()[1:]:
        assert len(told.splitlines()) >= 4  # a script, or what can be chosen
    else:
        assert told.startswith("nothing is there yet")


@pytest.mark.parametrize("line", of_pipeline("ui"))
def test_pages_of_a_store_that_is_not_there(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is typed is understood: the store is all that is missing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert call(line) == 2
    assert "there is no store yet" in capsys.readouterr().err


@pytest.mark.slow  # for what they import
@pytest.mark.parametrize("line", of_pipeline("benchmark"))
def test_options_of_benchmarks(line: str) -> None:
    _, name, *words = shlex.split(line)
    benchmark = importlib.import_module(BENCHMARKS[name])
    parser = Parser(benchmark.DESCRIPTION)
    benchmark.options(parser)
    parsed = parser.parse_args(["mlp" if word == "my_model" else word for word in words])
    assert not (parsed.quick and getattr(parsed, "write", False))  # which is refused


def test_clusters_that_are_not_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [call(line) for line in of_pipeline("cluster") if "up" not in line] == [1, 0]


# Another one trains for longer than a moment: tests/training/test_stock_trainer.py runs it.
@pytest.mark.parametrize(
    "line", [line for line in of("python") if re.match(r"python examples/(?!stock_trainer)", line)]
)
def test_examples(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, *words = shlex.split(line)[1:]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, *words])
    runpy.run_path(str(ROOT / script), run_name="__main__")


def test_extras_and_marks() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    named = re.findall(r"(?:\.|lit_byz)\[([\w,]+)\]", " ".join(of("pip")))
    assert named
    assert {name for names in named for name in names.split(",")} <= {*extras}
    marks = {mark.split(":")[0] for mark in PYPROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    for line in of("pytest"):
        words = shlex.split(line)
        if "-m" in words:
            expression = words[words.index("-m") + 1]
            assert {*re.findall(r"\w+", expression)} <= marks | {"and", "or", "not", "hypothesis"}
        assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def test_shell_scripts() -> None:
    scripts = [(ROOT / ".ci" / "run").read_text()]
    for source in SOURCES:
        blocks = re.findall(r"^```\n(#!.*?)^```", source.read_text(), re.MULTILINE | re.DOTALL)
        scripts += blocks
    assert len(scripts) >= 2
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.slow
def test_options_of_other_programs() -> None:
    """Parsed by their own parsers: neither MLflow nor Ray is started."""
    import click
    import mlflow.cli
    from ray.scripts import scripts

    groups = {"mlflow": mlflow.cli.cli, "ray": scripts.cli}
    lines = [line for line in of("mlflow", "ray") if "--help" not in line]
    lines += [line[line.index("ray start") :] for line in of("srun")]
    assert len(lines) >= 6
    for line in lines:
        filled = re.sub(r"\$\(\(.*?\)\)|\$\w+", "1", line).replace("=1:1", "=head:1")
        program, name, *words = shlex.split(filled)
        command = groups[program].get_command(click.Context(groups[program]), name)
        with command.make_context(name, words, resilient_parsing=False) as context:
            assert context.params


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in of("python") if "-m pydoc" in line])
def test_help_on_modules(line: str) -> None:
    name = shlex.split(line)[-1]
    shown = pydoc.plain(pydoc.render_doc(name))
    lacking = [each for each in importlib.import_module(name).__all__ if each not in shown]
    assert lacking == []
    assert len(shown) > 300


@pytest.mark.slow
def test_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One store, with the runs that come with the repository and a sweep of two short ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    (tmp_path / "docs" / "reproduction").mkdir(parents=True)
    runs = ROOT / "docs" / "reproduction" / "runs.jsonl.gz"
    for place in ("runs.jsonl.gz", "docs/reproduction/runs.jsonl.gz"):
        (tmp_path / place).symlink_to(runs)
    tiny = ["attack=[sf,zero]", "train.steps=4", "train.eval_every=2", "model=logreg"]
    assert call(shlex.join(["sweep", *tiny, "--executor", "inline", "--progress", "none"])) == 0
    (run_id,) = re.findall(r"report(?:\.py)? (\w{32})", capsys.readouterr().out)
    lines = of_pipeline("report")
    assert {"report list", "report", "report RUN_ID", "report paper/fig1a"} <= {*lines}
    lines.sort(key=lambda line: "import" not in line)
    for line in lines:
        if line.split()[:2] == ["report", "paper"]:
            continue  # the page with everything takes minutes; tests/report/paper draw small ones
        if line.startswith("report export"):
            (tmp_path / "runs.jsonl.gz").unlink()
        shutil.rmtree(tmp_path / "outputs", ignore_errors=True)
        only_png = ["--formats", "png"] if "paper/" in line else []
        code = call(line.replace("RUN_ID", run_id), *only_png)
        told = capsys.readouterr()
        assert code == 0, f"{line}: {told.err}"
        if line.startswith("report export"):
            assert gzip.decompress((tmp_path / "runs.jsonl.gz").read_bytes()).count(b"\n") >= 2
        elif line.startswith("report list"):
            assert "paper/fig1a" in told.out
        elif not line.startswith("report import"):
            drawn = [path.name for path in (tmp_path / "outputs").rglob("*.png")]
            assert drawn, line
            assert any(name in told.out for name in drawn)


@pytest.mark.slow
def test_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They find the accuracies that the run has ended with, and had at its best."""
    from lit_byz import train

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    settings = ["model=logreg", "train.steps=4", "train.eval_every=2", "tracking.model=both"]
    result = train(settings)
    lines = of_pipeline("evaluate")
    assert len(lines) >= 3
    for line in lines:
        capsys.readouterr()
        assert call(line.replace("RUN_ID", str(result.run_id))) == 0
        expected = result.max_accuracy if "which=best" in line else result.accuracy
        told = capsys.readouterr().out
        assert f"\naccuracy {expected:.4f}, loss " in told
        (table,) = re.findall(r"numbers (\S+\.csv)", told)
        assert (tmp_path / table).exists()


@pytest.mark.data
def test_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in of_pipeline("data"):
        assert call(line.replace(" --root out", "")) == 0  # into the cache, where they are
