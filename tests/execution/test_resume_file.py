"""Going on from a checkpoint that is named: of the same run, of another one, of nothing."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lit_byz.config.compose import compose
from lit_byz.config.identity import identity
from lit_byz.errors import BadRequest
from tests.execution import _runs
from tests.execution._runs import QUICK, quick, wishing
from tests.execution._whole import RICH, STEPS, Whole, assert_same_run

OTHER = "train.momentum=0.5"
ATTACK = """
from lit_byz.attacks import SignFlip

class Mine(SignFlip):
    pass
"""
pytestmark = pytest.mark.usefixtures("users_parts")


@pytest.fixture(scope="module")
def checkpoint(users_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run whose store is elsewhere, after five steps."""
    folder = tmp_path_factory.mktemp("old")
    with wishing(copy=(8, folder, folder / "copy.ckpt"), signal=(9, "SIGINT")):
        quick(folder, *RICH)
    return folder / "copy.ckpt"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of a user's that is about to change."""
    path = tmp_path / "attack_that_changes.py"
    path.write_text(ATTACK)
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop(path.stem, None)


def change(module: Path) -> None:
    module.write_text(f"{module.read_text()}    strength = 2\n")
    del sys.modules[module.stem]


def refused(store: Path, *settings: str) -> str:
    with pytest.raises(BadRequest) as caught:
        quick(store, *settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_same_run_in_another_store(whole: Whole, checkpoint: Path, tmp_path: Path) -> None:
    """It has the whole history there."""
    store, parameters = tmp_path / "new", tmp_path / "new.pt"
    with wishing(keep=parameters):
        result = quick(store, *RICH, f"resume={checkpoint}")
    assert result.resumed_at == 5
    assert_same_run(whole, store, parameters)
    assert checkpoint.exists()


def test_a_run_with_other_settings_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    for other in (OTHER, "seed=2", "attack=sf", "train.gradients=vmap", "trainer.callbacks=[]"):
        settings = [s for s in RICH if not s.startswith("attack.")] if "attack" in other else RICH
        said = refused(tmp_path, *settings, other, f"resume={checkpoint}")
        assert said == (
            f"resume = {checkpoint}: is a checkpoint of a run with other settings; "
            "resume_as=new goes on from it as a new experiment"
        )
    assert _runs.run_ids(tmp_path) == []


def test_settings_that_change_no_result_may_differ(checkpoint: Path, tmp_path: Path) -> None:
    harmless = ["train.checkpoint_every=3", "data.test_batch_size=50", "trainer.accelerator=cpu"]
    result = quick(tmp_path, *RICH, *harmless, f"resume={checkpoint}")
    assert (result.status, result.resumed_at) == ("finished", 5)


@pytest.mark.slow
def test_a_new_experiment_begins_from_another_run(checkpoint: Path, tmp_path: Path) -> None:
    """It has an identity of its own, which the plain config does not find."""
    changed = [*RICH, OTHER]
    fork = quick(tmp_path, *changed, f"resume={checkpoint}", "resume_as=new")
    assert (fork.status, fork.resumed_at, fork.steps_done) == ("finished", 5, STEPS)
    assert fork.identity != identity(compose([*QUICK, *changed]))
    plain = quick(tmp_path, *changed, "resume=auto")
    assert (plain.reused, plain.resumed_at) == (False, None)
    assert plain.identity == identity(compose([*QUICK, *changed]))
    ours, theirs = (_runs.timeless(run.history) for run in (fork, plain))
    assert ours["train/loss"][0] == theirs["train/loss"][0]
    assert ours["train/loss"][-1] != theirs["train/loss"][-1]
    same = quick(tmp_path, *RICH, f"resume={checkpoint}", "resume_as=new")
    assert same.identity not in (fork.identity, plain.identity)
    assert same.identity != identity(compose([*QUICK, *RICH]))


def test_other_code_is_another_run(module: Path, tmp_path: Path) -> None:
    """Neither its checkpoint is taken nor its result, and it is said whose they are."""
    store = tmp_path / "store"
    settings = [f"attack={module.stem}.Mine", "train.steps=6", "train.checkpoint_every=2"]
    settings.append(_runs.CALLBACKS)
    with wishing(signal=(4, "SIGINT")):
        stopped = quick(store, *settings)
    (path,) = store.glob("checkpoints/*/last.ckpt")
    before = _runs.tags_of(store, stopped.run_id)["lit_byz.code"]
    change(module)
    said = refused(store, *settings, f"resume={path}")
    assert f"is a checkpoint of a run with other code ({before}, now " in said
    anew = quick(store, *settings, "resume=auto")
    assert (anew.reused, anew.resumed_at, anew.other_code) == (False, None, (before,))
    assert anew.identity != stopped.identity
    tags = [_runs.tags_of(store, run.run_id) for run in (stopped, anew)]
    assert tags[0]["lit_byz.settings"] == tags[1]["lit_byz.settings"]
    again = quick(store, *settings, "resume=auto")
    assert (again.reused, again.run_id, again.other_code) == (True, anew.run_id, ())
    fork = quick(store, *settings, f"resume={path}", "resume_as=new")
    assert (fork.status, fork.resumed_at) == ("finished", 4)


def test_files_that_are_no_checkpoints(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "text.ckpt").write_text("no checkpoint")
    (tmp_path / "empty.ckpt").write_bytes(b"")
    (tmp_path / "half.ckpt").write_bytes(checkpoint.read_bytes()[:5000])
    for name in ("text", "empty", "half"):
        said = refused(tmp_path, *RICH, f"resume={tmp_path / name}.ckpt")
        assert said.startswith(f"resume = {tmp_path / name}.ckpt: is no checkpoint of a run (")
    said = refused(tmp_path, *RICH, "resume=nowhere.ckpt")
    assert said == "resume = nowhere.ckpt: there is no such file; or say resume=auto"
    assert _runs.run_ids(tmp_path) == []


def test_a_new_experiment_needs_a_checkpoint_too(tmp_path: Path) -> None:
    (tmp_path / "text.ckpt").write_text("no checkpoint")
    said = refused(tmp_path, *RICH, f"resume={tmp_path}/text.ckpt", "resume_as=new")
    assert said.startswith(f"resume = {tmp_path}/text.ckpt: is no checkpoint of a run (")
    assert _runs.run_ids(tmp_path) == []
