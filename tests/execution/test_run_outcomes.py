"""Runs that end otherwise than well, users' callbacks, and the command's last words."""

import math
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from lit_byz.cli.train import summary
from lit_byz.config.components import build, build_model
from lit_byz.config.compose import compose, to_plain
from lit_byz.config.grid import Point
from lit_byz.config.identity import identify
from lit_byz.errors import BadRequest
from lit_byz.tracking import open_store
from lit_byz.tracking.ledger import Ledger
from lit_byz.training import BestParameters, DissimilarityLogger
from tests.execution import _runs
from tests.execution._runs import MODULE, quick
from tests.tracking._stores import new_store

DIVERGING = [
    *("attack=foe", "attack.tau=1e6", "clip=none", "mix=none", "rule=average"),
    *("train.steps=300", "train.lr=1e3", "train.eval_every=100", "model=mlp"),
]


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_non_finite_attack(tmp_path: Path, value: str) -> None:
    """The server takes the attackers' vectors for zeros, counts them and goes on."""
    settings = ["train.steps=6", "workers.f=2", "tracking.enabled=false"]
    result = quick(tmp_path, *settings, "attack=non_finite", f"attack.value={value}")
    assert result.status == "finished"
    assert result.history["server/non_finite"] == [(step, 2.0) for step in range(6)]
    zeros = quick(tmp_path, *settings, "attack=zero")
    assert zeros.history["server/non_finite"] == [(step, 0.0) for step in range(6)]
    for key in ("train/loss", "test/accuracy", "server/output_norm"):
        for (_, ours), (_, theirs) in zip(result.history[key], zeros.history[key], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-5), key


def test_divergence_is_a_result(tmp_path: Path) -> None:
    result = quick(tmp_path, *DIVERGING)
    assert result.status == "diverged"
    assert 0 < result.steps_done < 300
    assert _runs.status_of(tmp_path, result.run_id) == "FINISHED"
    assert _runs.tags_of(tmp_path, result.run_id)["lit_byz.status"] == "diverged"
    values = _runs.values_of(tmp_path, result.run_id)
    assert all(math.isfinite(value) for value in values.values())
    assert ("test/max_accuracy", result.steps_done - 1) in values
    assert _runs.duplicates(tmp_path) == []
    again = quick(tmp_path, *DIVERGING, "resume=auto")
    assert again.reused
    assert (again.status, again.steps_done) == ("diverged", result.steps_done)
    assert again.max_accuracy == result.max_accuracy
    here = f"tracking.uri={new_store(tmp_path)}"
    text = summary(compose([*_runs.QUICK, *DIVERGING, here]), result)
    assert f"diverged: every honest vector was non-finite after step {result.steps_done};" in text
    assert "the last accuracy counts as the mean of the last evaluations, too" in text
    assert "mean of the last 2 evaluations" not in text
    assert result.history["test/accuracy"][-1] == (result.steps_done - 1, result.accuracy)


@pytest.mark.usefixtures("users_parts")
@pytest.mark.parametrize(("done", "evaluated"), [(1, [0]), (3, [2]), (4, [3]), (6, [3, 5])])
def test_the_last_evaluation_stands_at_the_step_of_its_parameters(
    done: int, evaluated: list[int], tmp_path: Path
) -> None:
    """And where they had been evaluated, it is no other one, though batch norm has gone on."""

    class Spoil(Callback):
        def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            if pl_module.global_step == done:
                pl_module.momentums.fill_(math.nan)

    settings = [f"model={MODULE}.TinyNet", "train.steps=9", "train.lr=0.5", "attack=sf"]
    best = BestParameters()
    result = quick(tmp_path, *settings, callbacks=[Spoil(), best])
    assert (result.status, result.steps_done) == ("diverged", done)
    for key in ("test/accuracy", "test/loss"):
        assert _runs.steps_of(tmp_path, result.run_id, key) == evaluated
    found = dict(result.history["test/accuracy"])
    assert list(found) == evaluated
    assert result.accuracy == result.mean_last == found[done - 1]
    assert result.max_accuracy == found[result.step_of_max] == max(found.values())
    assert best.accuracy == pytest.approx(result.max_accuracy)


@pytest.mark.parametrize(
    ("steps", "said"),
    [(1, None), (2, "mean of the last 2 evaluations"), (7, "mean of the last 5 evaluations")],
)
def test_the_mean_is_of_as_many_evaluations_as_there_are(
    steps: int, said: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [f"train.steps={steps}", "train.eval_every=1", "attack=sf"]
    assert _runs.command(tmp_path, settings) == 0
    printed = capsys.readouterr().out
    assert ("mean of the last" in printed) == (said is not None)
    assert said is None or said in printed


def test_divergence_at_the_first_step_is_judged_at_the_initial_parameters(tmp_path: Path) -> None:
    """There is no other accuracy; that of parameters which were never evaluated would be none."""
    settings = ["model=mlp", "model.init_scale=1e30", "train.steps=5"]
    result = quick(tmp_path, *settings)
    assert (result.status, result.steps_done) == ("diverged", 0)
    config = compose([*_runs.QUICK, *settings, f"tracking.uri={new_store(tmp_path)}"])
    model = build_model(config).eval()
    batches = list(build("dataset", config.dataset).load().test_batches())
    with torch.no_grad():
        right = sum(int((model(x).argmax(1) == y).sum()) for x, y in batches)
    expected = right / sum(len(y) for _, y in batches)
    assert expected > 0
    assert result.max_accuracy == pytest.approx(expected)
    point = Point({}, to_plain(config), identify(to_plain(config)))
    outcome = Ledger.of(point.plain["tracking"]).look_up([point])[point.identity].outcome
    assert outcome is not None
    assert (outcome.status, outcome.max_accuracy) == ("diverged", result.max_accuracy)


def test_lost_honest_workers_are_counted(tmp_path: Path) -> None:
    """A worker whose momentum has become NaN counts as non-finite, and does not end the run."""

    class Spoil(Callback):
        def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            if pl_module.global_step == 2:
                pl_module.momentums[1, 3] = math.nan

    for attack in ("sf", "mimic", "foe", "lf"):
        settings = ["train.steps=4", f"attack={attack}", "tracking.enabled=false"]
        result = quick(tmp_path, *settings, callbacks=[Spoil()])
        assert result.status == "finished"
        counts = [count for _, count in result.history["server/non_finite"]]
        assert counts == [0.0, 0.0, 1.0, 1.0], attack
        assert all(math.isfinite(v) for _, v in result.history["test/loss"])


@pytest.mark.usefixtures("users_parts")
def test_failed_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [f"attack={MODULE}.Breaks", "train.steps=6", "train.checkpoint_every=2"]
    assert _runs.command(tmp_path, settings) == 1
    assert capsys.readouterr().err == "error: RuntimeError: the attackers lost their nerve\n"
    (run_id,) = _runs.run_ids(tmp_path)
    assert _runs.status_of(tmp_path, run_id) == "FAILED"
    tags = _runs.tags_of(tmp_path, run_id)
    assert tags["lit_byz.error"] == "RuntimeError: the attackers lost their nerve"
    assert _runs.steps_of(tmp_path, run_id, "train/loss") == [0, 1, 2]
    # It goes on from its checkpoint, and fails again for the same reason.
    assert _runs.command(tmp_path, [*settings, "resume=auto"]) == 1
    assert _runs.run_ids(tmp_path) == [run_id]
    assert _runs.status_of(tmp_path, run_id) == "FAILED"
    assert _runs.duplicates(tmp_path) == []


def test_a_checkpoint_that_cannot_be_deleted_fails_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Obstruct(Callback):
        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            (checkpoint,) = tmp_path.glob("checkpoints/*/last.ckpt")
            # A link to a folder is nothing that may be followed and emptied.
            elsewhere = checkpoint.parent.rename(tmp_path / "elsewhere")
            checkpoint.parent.symlink_to(elsewhere)

    settings = ["train.steps=4", "train.checkpoint_every=2", "attack=sf"]
    result = quick(tmp_path, *settings, callbacks=[Obstruct()])
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("a finished run's checkpoint cannot be deleted: ")
    assert result.status == "finished"
    assert _runs.status_of(tmp_path, result.run_id) == "FINISHED"
    assert "lit_byz.error" not in _runs.tags_of(tmp_path, result.run_id)


@pytest.mark.usefixtures("users_parts")
def test_users_callbacks(tmp_path: Path) -> None:
    settings = ["train.steps=2", "attack=sf", "tracking.enabled=false"]
    entry = f"{{name: {MODULE}.KeepParameters, path: {tmp_path}/last.pt}}"
    both = f"[{entry}, lit_byz.training.DissimilarityLogger]"
    result = quick(tmp_path, *settings, f"trainer.callbacks={both}")
    assert set(torch.load(tmp_path / "last.pt", weights_only=True)) == {
        "layers.1.weight",
        "layers.1.bias",
    }
    assert [step for step, _ in result.history["honest/B"]] == [0]
    assert result.history["honest/G"][0][1] >= 0
    with pytest.raises(BadRequest, match=r"trainer\.callbacks: .*KeepParameters: .*'colour'"):
        quick(
            tmp_path, *settings, f"trainer.callbacks=[{{name: {MODULE}.KeepParameters, colour: 1}}]"
        )


def test_callbacks_are_a_part_of_the_run(tmp_path: Path) -> None:
    """They may change it: a run without them, or with other ones, is another run."""

    class Cool(Callback):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
            pl_module.momentums *= self.factor

    settings = ["train.steps=4", "attack=sf", "resume=auto"]
    bare = quick(tmp_path, *settings)
    cooled = quick(tmp_path, *settings, callbacks=[Cool(0.5)])
    frozen = quick(tmp_path, *settings, callbacks=[Cool(0.0)])
    found = [bare, cooled, frozen]
    assert len({result.identity for result in found}) == 3
    assert not any(result.reused for result in found)
    assert len({str(_runs.timeless(result.history)) for result in found}) == 3
    again = quick(tmp_path, *settings, callbacks=[Cool(0.5)])
    assert (again.reused, again.run_id) == (True, cooled.run_id)
    watched = quick(tmp_path, *settings, callbacks=[DissimilarityLogger()])  # which only looks on
    assert (watched.reused, watched.run_id) == (True, bare.run_id)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["train.steps=2", "attack=sf", "resume=auto"]
    assert _runs.command(tmp_path, settings) == 0
    printed = capsys.readouterr()
    assert "maximal accuracy 0." in printed.out
    assert f"lit-byz ui tracking.uri=sqlite:///{tmp_path}/mlflow.db" in printed.out
    assert "2 steps in" in printed.out
    told = "workers.batch_size = 8, train.eval_every = 4"
    assert f"\nmodel logreg; not the default: {told}\n" in printed.out
    assert printed.err == ""
    assert _runs.command(tmp_path, settings) == 0
    assert "had been finished before; nothing was computed" in capsys.readouterr().out
    assert len(_runs.run_ids(tmp_path)) == 1


def test_progress_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick(tmp_path, "train.steps=5", "attack=sf", "tracking.enabled=false", progress=True)
    printed = capsys.readouterr().err
    assert "digits, extreme, f=1, cwtm∘nnm, clip arc, sf, seed 1" in printed.replace("\n", " ")
    assert "step 5/5  accuracy 0." in printed
    assert "step 3/5  C " in printed  # nothing has been evaluated yet


@pytest.mark.parametrize("status", ["KILLED", "RUNNING"])
def test_nothing_is_left_of_a_first_checkpoint_that_did_not_fit(
    status: str, tmp_path: Path
) -> None:
    """Its run had nothing to save, and is begun anew as another one."""
    settings = ["train.steps=4", "attack=sf", "resume=auto"]
    first = quick(tmp_path, *settings)
    client = open_store(str(first.store_uri)).client
    client.set_terminated(str(first.run_id), "KILLED")
    client.update_run(str(first.run_id), status=status)
    left = tmp_path / "checkpoints" / str(first.run_id) / "last.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"the beginning of one")
    second = quick(tmp_path, *settings)
    assert (second.status, second.run_id != first.run_id) == ("finished", True)
    assert not left.parent.exists()


class Hears(Callback):
    """A signal comes in one of the trainer's hooks."""

    def __init__(self, hook: str, number: signal.Signals) -> None:
        self.number = number
        self.heard = False
        setattr(self, hook, self.hear)

    def hear(self, *_: Any, **__: Any) -> None:
        if not self.heard:
            self.heard = True
            signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("hook", "status"),
    [
        ("setup", "interrupted"),
        ("on_fit_start", "interrupted"),
        ("on_train_batch_start", "interrupted"),
        ("on_train_end", "finished"),
        ("teardown", "finished"),
    ],
)
def test_whenever_a_signal_comes(
    hook: str, status: str, number: signal.Signals, tmp_path: Path
) -> None:
    """The run has saved itself after its next step, or has none left and is finished."""
    settings = ["train.steps=4", "attack=sf", "tracking.figures=false"]
    result = quick(tmp_path, *settings, callbacks=[Hears(hook, number)])
    assert (result.status, result.steps_done) == (status, 1 if status == "interrupted" else 4)
    run = open_store(str(result.store_uri)).run(str(result.run_id))
    assert run is not None
    assert run.info.status == ("KILLED" if status == "interrupted" else "FINISHED")
