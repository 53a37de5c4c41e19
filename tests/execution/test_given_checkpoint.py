"""A checkpoint that is named is read, and nothing else: it is somebody's own."""

from pathlib import Path

import pytest

from lit_byz.execution import run as module
from lit_byz.tracking.claims import Claim
from tests.execution import _runs
from tests.execution._runs import quick, wishing
from tests.execution._whole import RICH, STEPS

pytestmark = pytest.mark.usefixtures("users_parts")


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """The last checkpoint of a run that was interrupted after nine steps; one is beside it."""
    with wishing(signal=(9, "SIGINT")):
        quick(tmp_path / "theirs", *RICH)
    (path,) = (tmp_path / "theirs").glob("checkpoints/*/last.ckpt")
    assert path.with_name("previous.ckpt").exists()
    return path


@pytest.mark.parametrize("more", [(), ("resume_as=new",), ("resume_as=new", "train.momentum=0.5")])
def test_without_tracking_it_stays(
    interrupted: Path, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As do those beside it, while the run saves itself, and when it is finished."""
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in interrupted.parent.iterdir()}
    result = quick(tmp_path, *RICH, "tracking.enabled=false", f"resume={interrupted}", *more)
    assert (result.status, result.resumed_at, result.steps_done) == ("finished", 9, STEPS)
    assert {path.name: path.read_bytes() for path in interrupted.parent.iterdir()} == before
    assert not list(tmp_path.glob("mlruns/checkpoints/*"))


def test_a_run_is_claimed_before_it_is_gone_on_with(
    interrupted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its own checkpoint is named: a sweep may be at it."""
    claims: list[Claim | None] = []
    open_run = module.open_run

    def spy(attempt: module.Attempt, claim: Claim | None) -> module.TrackedRun:
        claims.append(claim)
        return open_run(attempt, claim)

    monkeypatch.setattr(module, "open_run", spy)
    store = interrupted.parents[2]
    result = quick(store, *RICH, f"resume={interrupted}")
    assert (result.status, result.resumed_at) == ("finished", 9)
    assert _runs.run_ids(store) == [result.run_id]
    assert len(claims) == 1
    assert claims[0] is not None
    quick(store, *RICH)  # a new one, whatever there is
    assert claims[1] is None


def test_what_a_finished_run_has_left_goes_when_it_is_found(tmp_path: Path) -> None:
    """Its process was killed before it deleted its checkpoints, or in the midst of a copy."""
    first = quick(tmp_path, *RICH, "resume=auto")
    left = tmp_path / "checkpoints" / str(first.run_id)
    (left / "tmp0").mkdir(parents=True)
    for name in ("last.ckpt", "tmp0/9.ckpt"):
        (left / name).write_bytes(b"a checkpoint")
    assert quick(tmp_path, *RICH, "resume=auto").reused
    assert not left.exists()
