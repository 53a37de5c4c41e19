"""The studies from Python: the same runs as by command, as DataFrames."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lit_byz
from lit_byz.config.as_typed import as_typed
from lit_byz.errors import BadRequest
from lit_byz.tracking import open_store
from tests.cli import _kills
from tests.cli._doors import ROOT
from tests.cli._studies import query
from tests.cli._sweeps import RUNS
from tests.tracking._stores import new_store

SMALL = {"dataset": "digits", "model": "logreg", "train": {"steps": 6, "eval_every": 3}}


@pytest.fixture(scope="module")  # of ``grid`` alone: what else is computed has a store of its own
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("functions")


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    tracking = {"uri": new_store(folder / "mlruns"), "figures": False}
    return {**SMALL, "tracking": tracking, **more}


@pytest.fixture(scope="module")
def grid(folder: Path) -> dict[str, Any]:
    axes = {"clip": ["none", "arc"], "attack": ["sf", "lf"], "seed": range(1, 3)}
    return settings(folder, **axes)


@pytest.fixture(scope="module")
def table(grid: dict[str, Any]) -> Any:
    return lit_byz.sweep(grid, executor="inline")


def test_a_row_for_every_cell(table: Any) -> None:
    assert isinstance(table, pd.DataFrame)
    assert list(table["clip"]) == ["none", "arc"]
    assert list(table["status"]) == ["exact", "exact"]
    assert (table["at_least"] == table["worst_case"]).all()
    assert (table["worst_case"] == table["at_most"]).all()
    best = table.runs.groupby(["cell", "seed", "attack"])["max_accuracy"].first()
    worst = best.groupby(["cell", "seed"]).min().groupby("cell")
    for row in table.itertuples():
        assert row.worst_case == pytest.approx(worst.mean()[row.cell], abs=1e-12)
        assert row.std == pytest.approx(worst.std()[row.cell], abs=1e-12)


def test_runs_lie_beside_it(table: Any) -> None:
    assert len(table.runs) == 8
    assert set(table.runs["status"]) == {"finished"}
    assert table.runs["run_id"].is_unique
    assert list(table.cells["cell"]) == list(table["cell"])
    again = pickle.loads(pickle.dumps(table))
    assert (again.run_id, len(again.runs)) == (table.run_id, 8)
    assert type(table[table["clip"] == "arc"]) is pd.DataFrame


def test_it_is_the_study_of_the_command(
    table: Any, grid: dict[str, Any], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from lit_byz.cli import sweep

    words = as_typed(grid)
    assert sweep.main([*words, "--executor", "inline", "--out", str(folder / "outputs")]) == 0
    assert f"report {table.run_id}" in capfd.readouterr().out
    assert len(query(folder, RUNS)) == 8
    listed = lit_byz.sweep(words, executor="inline")
    pd.testing.assert_frame_equal(pd.DataFrame(listed), pd.DataFrame(table))
    assert capfd.readouterr() == ("", "")


def test_the_ends_are_those_of_the_commands_csv(
    table: Any, grid: dict[str, Any], tmp_path: Path
) -> None:
    from lit_byz.cli import sweep

    words = [*as_typed(grid), "--executor", "inline", "--progress", "none"]
    assert sweep.main([*words, "--out", str(tmp_path)]) == 0
    written = pd.read_csv(tmp_path / "worst_case.csv", index_col=["cell", "attack", "seed"])
    for name in ("last_accuracy", "mean_last_5"):
        assert table[name].notna().all()
        for row in table.to_dict("records"):
            mean, std = (written.loc[(row["cell"], "worst case", what)] for what in ("mean", "std"))
            assert row[name] == row[f"{name}_at_most"] == pytest.approx(mean[name], abs=1e-12)
            assert row[f"{name}_std"] == pytest.approx(std[name], abs=1e-12)
        for run in table.runs.to_dict("records"):
            place = (run["cell"], run["attack"], str(run["seed"]))
            assert run[name] == pytest.approx(written.loc[place][name], abs=1e-12)
    assert (table.runs["last_accuracy"] == table.runs["accuracy"]).all()  # on the test images


def test_what_failed_is_there_and_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing.py").write_text(
        textwrap.dedent(
            """
            from lit_byz.attacks import SignFlip
            class Failing(SignFlip):
                def plan(self, scene, state):
                    if scene.step > 3:
                        raise RuntimeError("it broke")
                    return super().plan(scene, state)
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    grid = settings(tmp_path, attack=["sf", "failing.Failing"])
    with pytest.warns(UserWarning, match=r"not all runs have a result \(1 failed, 0 missing\)"):
        found = lit_byz.sweep(grid, executor="inline")
    (row,) = found.itertuples()
    assert (row.status, row.failed, row.planned) == ("at most", 1, 2)
    assert pd.isna(row.worst_case)
    assert (row.at_least, row.at_most) == (0.0, found.runs["max_accuracy"].min())
    assert list(found.runs["status"]) == ["finished", "failed"]
    assert found.runs["error"][1] == "RuntimeError: it broke"
    # It was evaluated before it failed, which is no result of all its steps.
    assert pd.isna(found.runs["max_accuracy"][1])
    assert pd.isna(found.runs["accuracy"][1])
    tags = open_store(grid["tracking"]["uri"]).client.get_run(found.runs["run_id"][1]).data.tags
    assert tags["lit_byz.status"] == "failed"


def test_what_was_refused_before_it_began_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attack's module becomes another while the first run is on: the second is not opened."""
    (tmp_path / "edited.py").write_text(
        textwrap.dedent(
            """
            import importlib, sys
            from pathlib import Path
            from lit_byz.attacks import SignFlip
            class Edited(SignFlip):
                def plan(self, scene, state):
                    with Path(__file__).open("a") as file:
                        file.write("# more\\n")
                    importlib.reload(sys.modules[__name__])
                    return super().plan(scene, state)
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    grid = settings(tmp_path, attack="edited.Edited", seed=[1, 2])
    with pytest.warns(UserWarning, match="see the columns status and error of .runs"):
        found = lit_byz.sweep(grid, executor="inline")
    assert list(found.runs["status"]) == ["finished", "missing"]
    assert pd.isna(found.runs["error"][0])
    assert "the code here is not that with which the runs were planned" in found.runs["error"][1]
    assert found["status"].item() != "exact"


@pytest.mark.slow
def test_breakdown_has_a_row_for_every_arm(tmp_path: Path) -> None:
    grid = settings(tmp_path, clip=["none", "arc"], attack=["sf"])
    found = lit_byz.breakdown(grid, max_f=2, threshold=0.01, executor="inline")
    assert list(found["clip"]) == ["none", "arc"]
    assert found["breakdown_f"].isna().all()
    assert set(found["answer"]) == {"holds to f = 2"}
    assert {1, 2} >= set(found.cells["f"])
    broken = lit_byz.breakdown(grid, max_f=2, threshold=1.0, executor="inline")
    assert list(broken["breakdown_f"]) == [1, 1]
    assert set(broken["answer"]) == {"f = 1"}


@pytest.mark.slow
def test_tuning_has_a_row_for_every_trial(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="judged on the test images"):
        found = lit_byz.tune(settings(tmp_path, attack=["sf", "lf"]), trials=2, executor="inline")
    assert set(found["judged_on"]) == {"test"}
    assert list(found["trial"].dropna()) == [0, 1]
    assert found["clip.C"].notna().sum() == 2
    assert {"clip=none", "clip=arc"} <= set(found["cell"])
    assert list(found["clip"]) == ["static", "static", "none", "arc"]  # so that they can be grouped
    assert set(found["status"]) <= {"exact", "at most"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("clip=arc", "must be a list of key=value, or a mapping"),
        (["--dry-run"], "'--dry-run': must be key=value; options are arguments here"),
        (["clip=ark"], "unknown clip 'ark': did you mean 'arc'?"),
        ({"clip": object()}, "cannot be written as a setting: a object"),
        ({"tracking": {"enabled": False}}, "a study keeps its runs in the store"),
    ],
)
def test_bad_requests(given: Any, message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        lit_byz.sweep(given, executor="inline")
    assert message in str(raised.value)


def test_settings_are_typed_as_they_are_meant() -> None:
    given = {"train": {"lr": 1e-7, "lr_values": []}, "attack.search": None, "x": float("inf")}
    assert as_typed(given) == [
        "train.lr=1e-07",
        "train.lr_values=[]",
        "attack.search=null",
        "x=.inf",
    ]


SCRIPT = """
import lit_byz
print("once", flush=True)
found = lit_byz.sweep({settings!r}, workers=2)
print(found.status.tolist(), flush=True)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    """Processes of its own do not run a user's script again, nor what lies beside it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "argparse.py").write_text("raise SystemExit('hidden')")
    grid = settings(tmp_path, attack=["sf", "lf"], seed=[1, 2])
    (tmp_path / "script.py").write_text(SCRIPT.format(settings=grid))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        cwd=tmp_path / "elsewhere",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "once\n['exact']\n"), done.stderr
    assert "hidden" not in done.stderr


# How many runs have taken a step: before that there is nothing to save.
BEGUN = "select count(distinct run_uuid) from metrics where key = 'train/loss'"


@pytest.mark.slow
def test_ctrl_c_saves_the_runs_and_is_raised(tmp_path: Path) -> None:
    grid = settings(tmp_path, attack=["sf", "lf"], seed=[1, 2])
    grid["train"] = {"steps": 100_000, "eval_every": 10, "checkpoint_every": 0}
    text = SCRIPT.format(settings=grid).replace("found =", "try:\n    found =")
    text = text.replace("\nprint(found", "\nexcept KeyboardInterrupt:\n    print('heard')\n#")
    (tmp_path / "script.py").write_text(text)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    place = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    with _kills.started([sys.executable, "script.py"], **place, **pipes) as process:

        def both_are_on() -> bool:
            assert process.poll() is None
            return query(tmp_path, BEGUN) == [(2,)]

        _kills.wait_until("both runs have taken a step", both_are_on, 150)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (0, "once\nheard\n"), err
    assert {status for _, status in query(tmp_path, RUNS)} == {"KILLED"}
    assert list((tmp_path / "mlruns" / "checkpoints").glob("*/*.ckpt"))


def test_a_class_of_this_script_is_not_known_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is said before a run has failed for it."""
    from lit_byz.robust import CWTM

    monkeypatch.setattr(sys.modules["__main__"], "Mine", CWTM, raising=False)
    asked = settings(tmp_path, rule="__main__.Mine", attack=["sf"])
    with pytest.raises(BadRequest, match=r"rule '__main__\.Mine': processes do not run this"):
        lit_byz.sweep(asked)
    assert query(tmp_path, RUNS) == []
    assert list(lit_byz.sweep(asked, executor="inline")["status"]) == ["exact"]
