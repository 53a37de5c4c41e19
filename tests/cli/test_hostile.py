"""Requests that would do harm: exit code 2, one line, nothing executed, nothing written."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lit_byz.cli.command import guarded
from pipelines import breakdown, data, report, sweep, train, tune

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def refused(main: Callable[[list[str]], int], capsys: Capture, arguments: list[str]) -> str:
    """What a command says that refuses; it has left nothing behind."""
    before = sorted(Path().rglob("*"))
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.endswith("\n")
    _, *example = said.err.splitlines()
    assert not example or example[0] == "for example:"
    assert all(line.startswith("    ") for line in example[1:])
    assert sorted(Path().rglob("*")) == before
    return said.err.removeprefix("error: ").removesuffix("\n")


BAD = {
    "rule=collections.OrderedDict": "must derive from lit_byz.robust.Rule",
    "mix=bucketing mix.s=100": "mix.s = 100: must be at most n = 11",
    "rule=mda workers.honest=40 workers.f=15": "11,899,700,525,790 subsets",
    "seed=9223372036854775808": "integers must be between",
    "train.weight_decay=1e300": "must be at most 3.4e+38",
    "tracking.experiment=../../../x": "is the name of a folder too",
    "seed=\udcff": r"has the character '\udcff', which is no text",
    f"seed={'9' * 5000}": "has an integer of 5000 digits",
    "seed=!!int${IFS}x": "has 'x' for !!int",
    f"rule={'a' * 3000}": "unknown rule 'aaa",
    f"experiment={'a' * 3000}": "unknown experiment 'aaa",
    f"tracking.experiment={'é' * 150}": "must have at most 200 bytes",
    f"data.root={'d' * 5000}": "must have at most 4,096 characters",
    "attack={0}": "has the key 0, which is no text",
    "dataset=abc.ABC": "must derive from lit_byz.data.Dataset",
    "train.steps=${nothing}": "${nothing} is no key of this config",
    f"rule={'[' * 100_000}": "is nested more than 32 deep",
    "experiment=../../../etc/x": "unknown experiment",
    "model.hidden=[4000000000]": "parameters, must have at most",
}


@pytest.mark.parametrize("main", [train.main, sweep.main, tune.main, breakdown.main])
def test_refused_before_anything_starts(main: Callable[[list[str]], int], capsys: Capture) -> None:
    """No store is made, so there is no run in it that failed."""
    for request, reason in BAD.items():
        if main is breakdown.main and "workers.f=" in request:
            continue  # which is what it searches for
        words = [word.replace("${IFS}", " ") for word in request.split(" ")]
        quick = [] if main is train.main else ["--executor", "inline"]
        said = refused(main, capsys, [*words, *quick])
        assert reason in said, (request, said)
        assert len(said) < 2100


@pytest.mark.parametrize(
    "content",
    [
        "seed: !!int 'x'",
        "seed: !!timestamp 2025-01-01",
        "seed: !!python/object/apply:os.system ['touch ran']",
        "rule: {name: subprocess.Popen, args: [touch, ran]}",
        "? [a]\n: b",
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "c: [" + "*b, " * 50_000 + "]",
        "train: {lr_values: [" + "'${model.hidden}', " * 9000 + "]}\n"
        "model: {hidden: [" + "'${trainer.callbacks}', " * 9000 + "]}\n"
        "trainer: {callbacks: [" + "1, " * 9000 + "]}",
    ],
)
def test_files(content: str, capsys: Capture) -> None:
    Path("odd.yaml").write_text(content)
    for main in (train.main, sweep.main, tune.main):
        refused(main, capsys, ["config=odd.yaml", "--print-config"])
    assert refused(train.main, capsys, ["config=."]) == "cannot read .: Is a directory"
    assert refused(train.main, capsys, ["config=/dev/zero"]).startswith("/dev/zero: is larger")


def test_files_that_are_no_text(capsys: Capture) -> None:
    Path("odd.yaml").write_bytes(b"seed: \xff")
    said = refused(train.main, capsys, ["config=odd.yaml"])
    assert said == "odd.yaml: is no text in UTF-8: invalid start byte"


def test_folders_that_are_none(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    Path("circle").symlink_to("circle")
    for name in ("x" * 5000, "/dev/null", "circle", "\udcff", ":::", "~nobody"):
        monkeypatch.setenv("LIT_BYZ_CONFIGS", name)
        assert train.main(["--print-config"]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("pipeline", ["train", "sweep", "tune"])
def test_passwords_are_not_printed(
    pipeline: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    main = {"train": train.main, "sweep": sweep.main, "tune": tune.main}[pipeline]
    for uri in ("postgresql://me:pa/SEC@RET@host/db", "postgresql://host/db?password=SECRET"):
        assert main(["seed=1", f"tracking.uri={uri}", "--print-config"]) == 0
        printed = capsys.readouterr().out
        assert "uri: postgresql://" in printed
        assert "***" in printed
        assert not {"SEC", "RET"} & set(printed.replace("@", " ").replace("*", " ").split())
        assert "SECRET" not in printed
        Path("printed.yaml").write_text(printed)
        said = refused(main, capsys, ["config=printed.yaml"])
        assert "the password was left out where this was printed" in said


def test_passwords_in_errors(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:from/env@host/db")

    def run(arguments: object) -> None:
        raise RuntimeError("postgresql://me:my secret@host: no port 'my secret', from/env")

    arguments = ["tracking.uri=postgresql://me:my secret@host", "--debug"]
    assert guarded(run, arguments) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert "secret" not in said.partition("RuntimeError: ")[2]
    assert "from/env" not in said.partition("RuntimeError: ")[2]
    bad = refused(train.main, capsys, ["tracking.uri=[postgresql://me:SECRET@host]"])
    assert bad == "tracking.uri = ['postgresql://me:***@host']: must be text or null"


def test_what_a_terminal_would_act_on_is_escaped(capsys: Capture) -> None:
    assert train.main(["\x1b]0;x\x07", "\u2028"]) == 2
    said = capsys.readouterr().err
    assert said == (
        r"error: '\x1b]0;x\x07': settings are written as key=value, such as seed=2" + "\n"
    )


def test_a_working_directory_that_is_gone(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    program = f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n"
    program += "from pipelines.train import main; sys.exit(main(['--print-config']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    line = "error: the working directory cannot be found: No such file or directory\n"
    assert (done.returncode, done.stderr) == (2, line)


def test_other_commands(capsys: Capture) -> None:
    assert "must derive from" in refused(data.main, capsys, ["fetch", "subprocess.Popen"])
    assert "must derive from" in refused(data.main, capsys, ["show", "subprocess.Popen"])
    said = refused(report.main, capsys, ["tracking.experiment=../x"])
    assert "is the name of a folder too" in said
