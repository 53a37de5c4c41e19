"""Runs that travel: written to a file, brought into another store, taken for done there."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lit_byz import train
from lit_byz.errors import BadRequest
from lit_byz.tracking import open_store
from lit_byz.tracking.store import MACHINE, Store
from lit_byz.tracking.travel import EVERY, export_runs, import_runs
from pipelines.report import main as report
from pipelines.sweep import main as sweep
from tests.tracking._stores import new_store

SETTINGS = ["dataset=digits", "model=logreg", "workers.honest=6", "train.steps=45"]
SETTINGS += ["tracking.figures=false"]
SETTINGS += ["train.eval_every=10", "train.checkpoint_every=0", "attack=foe@coarse"]
SETTINGS += ["data.validation=0.1"]
# Of these not a bit is lost, nor the step.
EXACT = ("test/initial_accuracy", "test/accuracy", "test/loss", "val/accuracy", "val/loss")


def silent(done: int, count: int) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two finished runs, and the file that it exports."""
    folder = tmp_path_factory.mktemp("home")
    uri = new_store(folder)
    for seed in (1, 2):
        train([*SETTINGS, f"seed={seed}", f"tracking.uri={uri}", "data.root=/nowhere/of/mine"])
    store = open_store(uri)
    assert export_runs(store, store.experiment("lit_byz"), folder / "runs.gz", silent) == 2
    return folder


def opened(folder: Path) -> tuple[Store, str]:
    store = open_store(new_store(folder))
    return store, store.experiment("lit_byz")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8")]


@pytest.mark.slow
def test_a_sweep_takes_them_as_done(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    assert report(["import", str(home / "runs.gz")]) == 0
    assert "runs brought in: 2, there already: 0" in capsys.readouterr().out
    assert report(["import", str(home / "runs.gz")]) == 0
    assert "runs brought in: 0, there already: 2" in capsys.readouterr().out
    options = ["--executor", "inline", "--progress", "none", "--json"]
    assert sweep([*SETTINGS, "seed=[1,2]", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["computed"], found["reused"]) == (0, 2)
    # And what is exported there is the same file, byte for byte.
    assert report(["export", "again.gz"]) == 0
    assert (tmp_path / "again.gz").read_bytes() == (home / "runs.gz").read_bytes()


def test_what_a_file_holds(home: Path, tmp_path: Path) -> None:
    header, *runs = lines(home / "runs.gz")
    assert (header["format"], header["runs"]) == ("lit_byz runs", 2)
    text = gzip.decompress((home / "runs.gz").read_bytes()).decode()
    assert "nowhere" not in text  # places of a machine stay there
    assert str(home) not in text
    store, experiment = opened(home)
    for run in runs:
        (known,) = store.find(experiment, run["identity"])
        for key in EXACT:
            exact = store.history(known.info.run_id, key)
            assert list(zip(*run["series"][key], strict=True)) == exact, key
        thresholds = dict(store.history(known.info.run_id, "clip/threshold"))
        steps, values = run["series"]["clip/threshold"]
        assert steps == [0, EVERY, 2 * EVERY, 44]
        assert values == pytest.approx([thresholds[step] for step in steps], rel=1e-4)
        assert run["tags"][MACHINE]
        assert run["commit"] is None or len(run["commit"]) >= 40
    other, elsewhere = opened(tmp_path)
    import_runs(other, elsewhere, home / "runs.gz", silent)
    for run in runs:
        (brought,) = other.find(elsewhere, run["identity"])
        (known,) = store.find(experiment, run["identity"])
        assert brought.info.start_time == known.info.start_time
        assert brought.data.params["attack.search"] == "coarse"
        for key, value in known.data.metrics.items():
            assert brought.data.metrics[key] == pytest.approx(value, rel=1e-4)
        for key in EXACT:
            came = other.history(brought.info.run_id, key)
            assert came == store.history(known.info.run_id, key) != [], key


def better(run: dict[str, Any]) -> None:
    run["last"]["test/max_accuracy"][1] = 0.999


def another_rule(run: dict[str, Any]) -> None:
    run["config"]["rule"] = {"name": "gm"}


def another_identity(run: dict[str, Any]) -> None:
    run["identity"] = "0" * 64


def another_code(run: dict[str, Any]) -> None:
    run["code"] = "numerics 99"


def no_series(run: dict[str, Any]) -> None:
    del run["series"]


def half_a_character(run: dict[str, Any]) -> None:
    run["name"] = "\ud800"


def no_numbers(run: dict[str, Any]) -> None:
    run["series"]["test/loss"][1][0] = "low"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (half_a_character, r"run 2: has the character '.ud800', which is no text"),
        (no_numbers, "run 2: is damaged"),
        (better, "run 2: its maximal accuracy is not that of its evaluations"),
        (another_rule, "run 2: its settings are not those"),
        (another_identity, "run 2: its identity does not follow"),
        (another_code, "run 2: its identity does not follow"),
        (no_series, "run 2: is damaged"),
    ],
)
def test_a_run_that_was_changed_is_refused_with_its_file(
    change: Callable[[dict[str, Any]], None], message: str, home: Path, tmp_path: Path
) -> None:
    content = lines(home / "runs.gz")
    change(content[2])
    path = tmp_path / "changed.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in content).encode()))
    store, experiment = opened(tmp_path)
    with pytest.raises(BadRequest, match=message):
        import_runs(store, experiment, path, silent)
    assert not store.search(experiment, "")


def test_runs_of_other_code_are_brought_in_and_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lit_byz.config.identity.NUMERICS", 10**6)
    store, experiment = opened(tmp_path)
    found = import_runs(store, experiment, home / "runs.gz", silent)
    assert (found.new, found.other_code) == (2, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no exported runs"),
        (b'{"format": "other"}\n', "holds no exported runs"),
        (b'{"format": "lit_byz runs", "version": 7}\n', "is of version 7, not 1"),
        (b'{"format": "lit_byz runs", "version": 1, "runs": 3}\n', "0 of 3 runs are there"),
        (b'{"format": "lit_byz runs", "version": 1, "runs": 1}\n{"a":', "is damaged"),
    ],
)
def test_other_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(content))
    store, experiment = opened(tmp_path)
    with pytest.raises(BadRequest, match=message):
        import_runs(store, experiment, path, silent)


def test_a_file_that_was_cut_or_is_none(home: Path, tmp_path: Path) -> None:
    store, experiment = opened(tmp_path)
    whole = (home / "runs.gz").read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.gz").write_text("hello")
    for name in ("cut.gz", "text.gz", "missing.gz"):
        with pytest.raises(BadRequest, match=name):
            import_runs(store, experiment, tmp_path / name, silent)


def test_which_file_must_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", new_store(tmp_path / "mlruns"))
    for what in ("export", "import"):
        assert report([what]) == 2
        assert f"{what}: name a file" in capsys.readouterr().err
