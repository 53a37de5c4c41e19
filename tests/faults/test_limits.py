"""How often, and for how long: the numbers that the page on reliability has."""

import os
import time
from pathlib import Path

import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify
from lit_byz.execution import processes, ray_tasks
from lit_byz.execution.executor import GRACE
from lit_byz.execution.processes import LocalProcesses
from lit_byz.execution.ray_tasks import RETRIES, RayTasks
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome
from tests.cli._sweeps import ROOT
from tests.faults import pace
from tests.faults._steps import Notes
from tests.tracking._stores import new_store

PAGE = (ROOT / "docs" / "reliability.md").read_text()


def task(*settings: str) -> Task:
    plain = compose_plain(["dataset=digits", "model=logreg", "train.steps=4", *settings])
    return Task(plain, identify(plain))


def test_the_page_has_them() -> None:
    assert f"save themselves, within {GRACE:g} s;" in PAGE
    assert f"a run is tried again {('once', 'twice', 'three times')[RETRIES - 1]}." in PAGE


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_task_that_ray_loses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many times, by a real Ray, and then no more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    tries = str(tmp_path / "tries")

    def lost(*_: object) -> None:  # a worker needs no module of the tests to have it
        note = os.open(tries, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(note, b".")
        os._exit(1)

    monkeypatch.setattr(ray_tasks, "compute_remotely", lost)
    asked = task(f"tracking.uri={new_store(tmp_path / 'mlruns')}")
    waiting, heard = iter([asked]), list[Progress | Outcome]()
    RayTasks(count=1).run(lambda: next(waiting, None), heard.append, lambda: False)
    assert Path(tries).stat().st_size == 1 + RETRIES
    *notes, outcome = heard
    assert [str(getattr(note, "note", "")).partition(" (")[0] for note in notes] == [
        "lost with its worker, tried again"
    ] * RETRIES
    assert isinstance(outcome, Outcome)
    assert (outcome.identity, outcome.status) == (asked.identity, "interrupted")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_that_does_not_save_itself_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before its time, which is a second here."""
    notes = Notes(tmp_path / "notes")
    notes.folder.mkdir()
    monkeypatch.chdir(tmp_path)
    notes.allow(0)  # it waits after its first step, and nobody lets it go
    monkeypatch.setenv(pace.FOLDER, str(notes.folder))
    monkeypatch.setenv("LIT_BYZ_IMPORT", pace.__name__)
    monkeypatch.setattr(processes, "GRACE", 1.0)
    asked = task("tracking.enabled=false", f"trainer.callbacks=[{pace.__name__}.Pace]")
    waiting, heard = iter([asked]), list[Progress | Outcome]()
    since: list[float] = []

    def stopping() -> bool:
        if notes.waiting():
            since.append(time.monotonic())
        return bool(since)

    LocalProcesses(1).run(lambda: next(waiting, None), heard.append, stopping)
    assert time.monotonic() - since[0] >= 1.0
    outcome = heard[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.status == "interrupted"
    assert outcome.error == "its process ended with code -9"
