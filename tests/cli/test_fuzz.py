"""Whatever is asked, a command answers: exit code 0, or 2 and one line; and nothing else happens.

``--print-config`` goes through all that reads and checks settings, and computes nothing. The
default profile tries 300 inputs, ``--hypothesis-profile=thorough`` 3,000.
"""

import contextlib
import importlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lit_byz.config import plain_yaml
from tests.cli._odd_input import MODULE, SOURCE, TRACE, Asked, command_lines, files

COMMANDS = ("train", "sweep", "tune")
AT_ONCE = 5 if settings().max_examples > 25 else 2
SECONDS = 5.0
Main = Callable[[Sequence[str]], int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with a module in it that leaves a trace when it is imported."""
    here = tmp_path_factory.mktemp("odd")
    (here / f"{MODULE}.py").write_text(SOURCE)
    before, path = Path.cwd(), list(sys.path)
    os.chdir(here)
    yield here
    os.chdir(before)
    sys.path[:] = path


@pytest.fixture(scope="module", params=COMMANDS)
def main(request: pytest.FixtureRequest) -> Main:
    found: Main = importlib.import_module(f"pipelines.{request.param}").main
    return found


def answered(main: Main, folder: Path, asked: Asked, arguments: Sequence[str]) -> None:
    """Ask a command for a config, and look at all that it did."""
    kept = {key: value for key, value in os.environ.items() if key != "LIT_BYZ_IMPORT"}
    out, err = io.StringIO(), io.StringIO()
    before = sorted(folder.rglob("*"))
    begin = time.process_time()
    with (
        mock.patch.dict(os.environ, {**kept, **asked.variables}, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main([*arguments, "--print-config"])
        except SystemExit as stopped:  # --help
            code = stopped.code or 0
    took = time.process_time() - begin
    said, told = out.getvalue(), err.getvalue()
    shown = (asked, code, told[-2000:])
    assert code in (0, 2), shown
    assert took < SECONDS, shown
    assert "SECRET" not in said + told, shown
    assert sorted(folder.rglob("*")) == before, shown
    assert not (folder / TRACE).exists(), shown
    said.encode()
    told.encode()
    if code == 2:
        assert told.startswith("error: "), shown
        assert (said, len(told.partition("for example:\n")[0].splitlines())) == ("", 1), shown
        assert told.endswith("\n"), shown
        assert len(told) < 2500, shown
    else:
        assert told == "", shown
        if "usage:" not in said:
            assert isinstance(plain_yaml.read(said), dict)


quietly = settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ]
)


@quietly
@given(asked=st.lists(command_lines, min_size=AT_ONCE, max_size=AT_ONCE))
def test_command_lines(main: Main, folder: Path, asked: list[Asked]) -> None:
    for one in asked:
        answered(main, folder, one, one.arguments)


@quietly
@given(asked=st.lists(files, min_size=AT_ONCE, max_size=AT_ONCE))
def test_files(main: Main, folder: Path, asked: list[Asked]) -> None:
    """As ``config=FILE``, as an experiment, and in place of an option of the package."""
    for number, one in enumerate(asked):
        path, argument = [
            ("odd.yaml", "config=odd.yaml"),
            ("configs/experiment/odd.yaml", "experiment=odd"),
            ("configs/rule/cwtm.yaml", "rule=cwtm"),
            ("configs/dataset/digits.yaml", "dataset=digits"),
        ][number % 4]
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(one.file, encoding="utf-8", errors="replace")
        try:
            answered(main, folder, one, [argument, *one.arguments])
        finally:
            place.unlink()
