"""The shell's view of a command: what is printed, and the exit code."""

import argparse
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from lightning.pytorch.utilities.exceptions import SIGTERMException
from omegaconf import DictConfig

from lit_byz.cli.command import command, guarded
from lit_byz.config.components import GROUPS, options
from lit_byz.errors import BadRequest, RunFailed

ROOT = Path(__file__).parents[2]


def run_nothing(config: DictConfig, arguments: argparse.Namespace) -> None:
    """A command that does nothing."""


def test_runs_with_the_config_and_its_own_options() -> None:
    seen = []

    def run(config: DictConfig, arguments: argparse.Namespace) -> int:
        seen.append((config.seed, config.rule.name, arguments.dry_run))
        return 3

    code = command(
        "Try.",
        run,
        options=lambda parser: parser.add_argument("--dry-run", action="store_true"),
        argv=["seed=4", "--dry-run", "rule=krum"],
    )
    assert (code, seen) == (3, [(4, "krum", True)])


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BadRequest("f is wrong"), 2, "error: f is wrong\n"),
        (RunFailed("out of disk"), 1, "error: out of disk\n"),
        (KeyError("x\ny"), 1, "error: KeyError: 'x\\ny'\n"),
        (RuntimeError("two\nlines"), 1, "error: RuntimeError: two lines\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (SIGTERMException(), 130, "error: interrupted\n"),
    ],
)
def test_exit_codes(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(arguments: object) -> None:
        raise error

    assert guarded(run, []) == code
    assert capsys.readouterr().err == line
    assert guarded(run, ["--debug"]) == code
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith(line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dri-run"], "unrecognized arguments: --dri-run"),
        (["rule=cwtn"], "unknown rule 'cwtn': did you mean 'cwtm'?"),
        (["mnist"], "'mnist': settings are written as key=value, such as seed=2"),
    ],
)
def test_bad_requests(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("Try.", run_nothing, argv=arguments) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_help_lists_every_option_and_key(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command("Try this.", run_nothing, argv=["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "Try this." in shown
    lines = [line.strip() for line in shown.splitlines()]
    for group in GROUPS:
        at = next(i for i, line in enumerate(lines) if line.startswith(f"{group} (default: "))
        end = lines.index("", at)
        listed = {line.split(" ")[0] for line in lines[at + 1 : end]}
        assert set(options(group)) <= listed
    for start in ("workers.f=1 ", "train.momentum=0.9 ", "server.f=${workers.f} ", "seed=1 "):
        assert any(line.startswith(start) for line in lines), start
    assert any("zeta=2.0" in line for line in lines if line.startswith("arc"))


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline as short as they are, and a user's class beside where it is called."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "my_rules.py").write_text(
        "from lit_byz.robust import Rule\n\n"
        "class Mine(Rule):\n"
        "    def __init__(self, f: int, weight: float = 0.5) -> None:\n        pass\n"
        "    def aggregate(self, x):\n        return x.mean(0)\n"
    )
    pipeline = folder / "pipelines" / "try.py"
    pipeline.parent.mkdir()
    pipeline.write_text(
        textwrap.dedent(
            """
            import sys
            from lit_byz.cli.command import command

            def run(config, arguments):
                raise RuntimeError("it broke")

            sys.exit(command("Try.", run))
            """
        )
    )
    return pipeline


def call(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=script.parents[1],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_printed_config_feeds_back(script: Path) -> None:
    first = call(script, "--print-config", "rule=my_rules.Mine", "workers.f=2", "train.lr=1e-3")
    assert (first.returncode, first.stderr) == (0, "")
    assert "name: my_rules.Mine\n  f: ${server.f}\n  weight: 0.5\n" in first.stdout
    assert "rule.f = 2, server.f = 2" in first.stdout.splitlines()[-1]
    (script.parents[1] / "printed.yaml").write_text(first.stdout)
    second = call(script, "config=printed.yaml", "--print-config", LIT_BYZ_IMPORT="my_rules")
    assert second.stdout == first.stdout


def test_failures_are_one_line(script: Path) -> None:
    bad = call(script, "train.step=5")
    line = "error: unknown key 'step' in train: did you mean 'steps'?\n"
    assert (bad.returncode, bad.stdout, complaints(bad)) == (2, "", line)
    failed = call(script)
    assert (failed.returncode, complaints(failed)) == (1, "error: RuntimeError: it broke\n")


def complaints(done: "subprocess.CompletedProcess[str]") -> str:
    """What was said but for what was going on meanwhile."""
    lines = done.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.endswith("…\n"))
