"""Every command of the documentation has a test, or a reason why it has none.

tests/cli/test_documented.py has those that take settings, tests/docs/test_site.py `mkdocs build`.
"""

import importlib
import pydoc
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lit_byz.cli.benchmark import BENCHMARKS
from lit_byz.cli.command import Parser
from tests.cli._documented import ROOT, SOURCES, commands, of, of_pipeline
from tests.tracking._stores import new_store

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Commands that no test types as they stand. What can be parsed of them is, below.
NOT_RUN = {
    "python pipelines/benchmark.py": "minutes of measuring; tests/*/test_benchmark.py runs parts",
    "python pipelines/cluster.py up": "servers; tests/cli/test_cluster.py starts and ends them",
    "python docs/screenshot.py": "Chromium; tests/docs/test_screenshot.py takes the picture",
    "python -m tests.test_numerics": "writes committed results; tests/test_numerics.py reads them",
    "python pipelines/ui.py": "a server that stays; tests/cli/test_ui.py starts and ends it",
    "pip wheel": "minutes without a cache; tests/test_wheel.py builds and installs one",
    "pip install": "changes the environment; .ci/run installs, names of extras are checked",
    "pytest": "is what runs this; marks and folders are checked",
    "bash .ci/run": "is what runs this; its syntax is checked",
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
    *(f"python pipelines/{name}.py" for name in ("train", "sweep", "tune", "init_scaling")),
    *(f"python pipelines/{name}.py" for name in ("breakdown", "report", "evaluate", "data")),
    "python pipelines/cluster.py status",
    "python pipelines/cluster.py down",
    "python examples/",
    "python -m pydoc",
    "python -m lit_byz",
    "lit-byz",
    "mkdocs build",
)


def main_of(name: str) -> object:
    return importlib.import_module(f"pipelines.{name}").main


def call(line: str, *more: str) -> int:
    name, *words = shlex.split(line)
    return int(main_of(name)([*words, *more]))  # type: ignore[operator]


def test_every_command_is_run_or_has_a_reason() -> None:
    unknown = {c: s.name for c, s in commands().items() if not c.startswith((*RUN, *NOT_RUN))}
    assert unknown == {}
    unused = [begin for begin in NOT_RUN if not any(c.startswith(begin) for c in commands())]
    assert unused == []
    for command in commands():
        assert shlex.split(command)


@pytest.mark.slow  # for what they import
@pytest.mark.parametrize("line", of_pipeline("benchmark"))
def test_options_of_benchmarks(line: str) -> None:
    _, name, *words = shlex.split(line)
    benchmark = importlib.import_module(BENCHMARKS[name])
    parser = Parser(benchmark.DESCRIPTION)
    benchmark.options(parser)
    parser.parse_args(["mlp" if word == "my_model" else word for word in words])


def test_clusters_that_are_not_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [call(line) for line in of_pipeline("cluster") if "up" not in line] == [1, 0]


@pytest.mark.parametrize(
    "line", [line for line in of("python") if line.startswith("python examples/")]
)
def test_examples(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, *words = shlex.split(line)[1:]
    if "stock_trainer" in script:
        return  # tests/training/test_stock_trainer.py runs it, for longer than a moment
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
    assert len(pydoc.render_doc(shlex.split(line)[-1])) > 300


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
        only_png = ["--formats", "png"] if "paper/" in line else []
        code = call(line.replace("RUN_ID", run_id), *only_png)
        assert code == 0, f"{line}: {capsys.readouterr().err}"


@pytest.mark.slow
def test_evaluations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lit_byz import train

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    settings = ["model=logreg", "train.steps=4", "train.eval_every=2", "tracking.model=both"]
    run_id = str(train(settings).run_id)
    lines = of_pipeline("evaluate")
    assert len(lines) >= 3
    for line in lines:
        assert call(line.replace("RUN_ID", run_id)) == 0


@pytest.mark.data
def test_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in of_pipeline("data"):
        assert call(line.replace(" --root out", "")) == 0  # into the cache, where they are


@pytest.mark.slow
@pytest.mark.parametrize("page", [path for path in SOURCES if path.suffix == ".md"])
def test_python_in_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of Python run as they stand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path))
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(page), "exec"), {})
