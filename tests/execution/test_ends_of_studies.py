"""How a study ends that something else than its last run ends, and what that leaves behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lit_byz import train
from lit_byz.execution import task_run
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking import open_store
from lit_byz.tracking.claims import FileClaims, NotAwaited, held
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.patience import StoreGone
from lit_byz.tracking.store import claim_on
from tests.cli._studies import run as study
from tests.execution import _runs
from tests.execution._runs import QUICK
from tests.tracking._ledgers import end, some_points
from tests.tracking._stores import new_store

GRID: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "tracking": {"figures": False},
    "train": {"steps": 4, "eval_every": 2},
    "grid": {"axes": {"attack": ["sf", "lf"], "clip": ["none", "arc"]}},
}
Compute = Callable[[Task, Callable[[Progress], None]], Outcome]


def computing(monkeypatch: pytest.MonkeyPatch, compute: Compute) -> None:
    monkeypatch.setattr(task_run, "compute", compute)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"error": "tracking.uri = x: away", "store_gone": True}, 1),
        ({"error": "OSError: [Errno 5] Input/output error"}, 1),
        ({}, 130),  # the run has heard a signal
    ],
)
def test_a_store_or_a_disk_that_ends_a_run_is_no_signal(
    how: dict[str, Any], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computing(monkeypatch, lambda task, _: Outcome(task.identity, "interrupted", **how))
    answer = study(tmp_path, "sweep", GRID)
    assert answer.code == code, answer.stderr
    assert "4 runs missing: the same command goes on from here" in answer.stdout


def test_what_another_study_has_computed_meanwhile_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one is stopped; the other one has completed a cell of the same study."""

    def interrupted(task: Task, _: Callable[[Progress], None]) -> Outcome:
        cell = {"clip": task.config["clip"]["name"]}
        found = some_points(tmp_path / "mlruns", ["sf", "lf"], clip=["none", "arc"])
        for point in found:
            if point.plain["clip"]["name"] != cell["clip"]:
                end(point, "finished", 0.5)
        return Outcome(task.identity, "interrupted")

    monkeypatch.setattr("tests.tracking._ledgers.BASE", {k: GRID[k] for k in GRID if k != "grid"})
    computing(monkeypatch, interrupted)
    assert study(tmp_path, "sweep", GRID).code == 130
    query = (
        "select r.status, w.value from runs r "
        "join tags k on k.run_uuid = r.run_uuid and k.key = 'lit_byz.kind' and k.value = 'cell' "
        "join tags w on w.run_uuid = r.run_uuid and w.key = 'lit_byz.worst_case'"
    )
    found = dict(_runs.rows(tmp_path / "mlruns", query))  # type: ignore[arg-type]
    assert found.keys() == {"FINISHED", "KILLED"}
    assert found["FINISHED"] == "exact"


def test_who_was_hurried_before_is_not_hurried_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook's sweep was stopped by Ctrl-C; the next one waits for a store again."""
    patience = open_store(new_store(tmp_path / "mlruns")).patience
    seen: list[bool] = []

    def compute(task: Task, _: Callable[[Progress], None]) -> Outcome:
        seen.append(patience.hurried)
        return Outcome(task.identity, "interrupted")

    computing(monkeypatch, compute)
    for _ in range(2):
        assert study(tmp_path, "sweep", GRID).code == 130
    assert seen == [False, False]
    assert patience.hurried, "what was left to write did not wait"
    result = train([*QUICK, "train.steps=4", f"tracking.uri={new_store(tmp_path / 'mlruns')}"])
    assert (result.status, patience.hurried) == ("finished", False)


def test_a_run_that_fails_hurries_no_other(users_parts: None, tmp_path: Path) -> None:
    uri = new_store(tmp_path)
    with pytest.raises(RuntimeError, match="lost"):
        train([*QUICK, f"attack={_runs.MODULE}.Breaks", f"tracking.uri={uri}"])
    assert not open_store(uri).patience.hurried


def task_of(folder: Path) -> Task:
    (point,) = some_points(folder, ["sf"])
    return Task(point.plain, point.code)


def test_a_signal_before_the_first_step_counts(tmp_path: Path) -> None:
    """While a process imports and reads data, its main program hears the signals."""
    task = task_of(tmp_path)
    patience = open_store(new_store(tmp_path)).patience
    patience.hurried = True
    outcome = task_run.compute(task, lambda _: None)
    assert (outcome.status, outcome.steps_done, outcome.error) == ("interrupted", 1, None)
    assert patience.hurried


def test_who_waits_for_anothers_run_hears_a_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lit_byz.tracking.claims.HURRIED", 0.1)
    task = task_of(tmp_path)
    store = open_store(new_store(tmp_path))
    store.patience.hurried = True
    other = store.claims.take(claim_on(task.identity))
    assert other is not None
    outcome = task_run.compute(task, lambda _: None)
    assert (outcome.status, outcome.error, outcome.run_id) == ("interrupted", None, None)
    other.give_back()


def test_short_work_of_others_is_waited_for_all_the_same(tmp_path: Path) -> None:
    claims = FileClaims(tmp_path)
    other = claims.take("a name")
    assert other is not None
    looks: list[None] = []

    def hurried() -> bool:
        looks.append(None)
        if len(looks) == 2:
            other.give_back()
        return True

    with held(claims, "a name", hurried=hurried) as claim:
        claim.check()
    assert len(looks) == 2


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lit_byz.tracking.claims.HURRIED", 0.1)
    claims = FileClaims(tmp_path)
    other = claims.take("a name")
    assert other is not None
    with pytest.raises(NotAwaited), held(claims, "a name", hurried=lambda: True):
        pass


def test_a_store_that_goes_after_the_last_step_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no checkpoints are asked for."""
    settings = [*QUICK, "train.steps=6", "train.checkpoint_every=0", "resume=auto"]
    whole = train([*settings, f"tracking.uri={new_store(tmp_path / 'whole')}"])
    uri = new_store(tmp_path / "away")

    def gone(*_: Any) -> None:
        raise StoreGone("away")

    with monkeypatch.context() as patch:
        patch.setattr("lit_byz.tracking.runs.TrackedRun.close", gone)
        with pytest.raises(StoreGone):
            train([*settings, f"tracking.uri={uri}"])
    (path,) = (tmp_path / "away").glob("checkpoints/*/last.ckpt")
    assert torch.load(path, weights_only=True)["global_step"] == 6
    result = train([*settings, f"tracking.uri={uri}"])
    assert (result.status, result.steps_done) == ("finished", 6)
    assert result.resumed_at is not None
    assert _runs.timeless(result.history) == _runs.timeless(whole.history)
    for ours, theirs in zip(result.model.parameters(), whole.model.parameters(), strict=True):
        assert ours.equal(theirs)
