"""Settings that every test process shares."""

import os
import signal
from collections.abc import Iterator
from typing import Any

# A suite that a script starts in the background ignores Ctrl-C, and so would all that it tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One thread per process: the suite runs as several processes, and results do not depend on how many
# cores there are. Set before anything imports torch or numpy.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
# Ray gives its workers a low priority, with which they hardly get anywhere beside other tests.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (Ray spells it so)

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from lit_byz._compiler import compiler  # noqa: E402

# Reproducible and unhurried: the same examples on every machine, and no failure because a shared
# core was busy.
settings.register_profile(
    "lit_byz", deadline=None, derandomize=True, print_blob=True, max_examples=25
)
# Chosen with --hypothesis-profile=thorough.
settings.register_profile("thorough", settings.get_profile("lit_byz"), max_examples=100)
settings.load_profile("lit_byz")


@pytest.fixture(autouse=True)
def _nothing_named_before() -> Iterator[None]:
    """A module that one test names on a command line is not named in the next."""
    os.environ.pop("LIT_BYZ_IMPORT", None)
    yield
    os.environ.pop("LIT_BYZ_IMPORT", None)


@pytest.fixture(autouse=True)
def _without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a moment on a busy machine is not the same every time."""
    monkeypatch.setattr("lit_byz.cli.saying.AFTER", 1e9)


@pytest.fixture(autouse=True)
def _single_thread() -> None:
    import torch

    torch.set_num_threads(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Compiled code is tested where it can be made: the package does without, and so do these."""
    if compiler() is None:
        left_out = [item for item in items if item.get_closest_marker("compiler")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    # What may take longest begins first: one process would be left alone with it in the end.
    items.sort(key=_patience, reverse=True)


def _patience(item: pytest.Item) -> float:
    """The seconds that a test asks for; none where it does with the usual ones."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None and mark.args else 0.0


def pytest_report_header() -> str | None:
    """What is left out is said."""
    said = "no C++ compiler: the tests of compiled code (mark compiler) are left out"
    return said if compiler() is None else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many faults there were, and what was found after them."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    reports = [report for report in reports if getattr(report, "user_properties", [])]
    if reports:
        from tests.faults._tally import lines

        listed = lines(reports)
        if listed:
            terminalreporter.section("faults")
            for line in listed:
                terminalreporter.write_line(line)
