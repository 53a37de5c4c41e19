"""What a finished run leaves in the store."""

import json
import math
from importlib.metadata import version
from pathlib import Path

import mlflow.artifacts
import pytest
from mlflow.entities import Run
from omegaconf import OmegaConf

from lit_byz import TrainResult, train
from lit_byz.config.compose import compose, compose_plain
from lit_byz.config.grid import Grid, points
from lit_byz.config.identity import environment, identify, identity
from lit_byz.tracking import Store, open_store
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.new_run import git_commit
from lit_byz.tracking.records import CellRecord, PlannedRun, StudyRecord
from tests.execution import _runs
from tests.execution._runs import quick
from tests.tracking._stores import new_store

STEPS = 10
SETTINGS = [f"train.steps={STEPS}", "attack=foe", "train.lr=0.5", "partition=dirichlet"]
SETTINGS += ["tracking.figures=true"]
PER_STEP = {
    "arc/threshold",  # the old name, of ARC alone
    "clip/threshold",
    "attack/at_edge",
    "attack/damage",
    "attack/factor",
    "honest/max_norm",
    "honest/mean_norm",
    "server/clipped_byzantine",
    "server/clipped_honest",
    "server/non_finite",
    "server/output_norm",
    "train/loss",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def result(folder: Path) -> TrainResult:
    return quick(folder, *SETTINGS)


@pytest.fixture(scope="module")
def store(folder: Path) -> Store:
    return open_store(new_store(folder))


@pytest.fixture
def tracked(store: Store, result: TrainResult) -> Run:
    return store.client.get_run(result.run_id)


def test_every_step_once(folder: Path, result: TrainResult) -> None:
    for key in PER_STEP:
        assert _runs.steps_of(folder, result.run_id, key) == list(range(STEPS)), key
    assert _runs.steps_of(folder, result.run_id, "test/accuracy") == [3, 7, 9]
    assert _runs.steps_of(folder, result.run_id, "speed/steps_per_second") == [3, 7, 9]
    assert _runs.duplicates(folder) == []


def test_history_is_what_the_store_has(store: Store, result: TrainResult) -> None:
    assert result.run_id is not None
    for key, pairs in result.history.items():
        assert store.history(result.run_id, key) == pairs, key
    assert result.history.keys() >= PER_STEP


def test_maximal_accuracy(tracked: Run, result: TrainResult) -> None:
    accuracies = dict(result.history["test/accuracy"])
    best = max(accuracies.values())
    assert tracked.data.metrics["test/max_accuracy"] == best == result.max_accuracy
    assert accuracies[int(tracked.data.metrics["step_of_max"])] == best
    assert result.step_of_max == min(s for s, a in accuracies.items() if a == best)
    assert result.accuracy == accuracies[STEPS - 1]
    assert tracked.info.status == "FINISHED"


def test_params_can_be_filtered(store: Store, tracked: Run, result: TrainResult) -> None:
    params = tracked.data.params
    expected = {
        "seed": "1",
        "attack.name": "foe",
        "attack.tau": "None",
        "rule.name": "cwtm",
        "rule.f": "1",
        "clip.name": "arc",
        "partition.alpha": "0.1",
        "train.steps": str(STEPS),
        "workers.honest": "5",
    }
    assert {key: params[key] for key in expected} == expected
    for query in ("params.`rule.name` = 'cwtm' and params.`train.steps` = '10'",):
        (found,) = store.client.search_runs([tracked.info.experiment_id], query)
        assert found.info.run_id == result.run_id
    assert not store.client.search_runs([tracked.info.experiment_id], "params.`rule.f` = '2'")


def test_artifacts(store: Store, tracked: Run, tmp_path: Path) -> None:
    run_id = tracked.info.run_id
    paths = {item.path for item in store.client.list_artifacts(run_id)}
    assert paths == {"config.yaml", "figures", "model"}
    figures = {item.path: item.file_size for item in store.client.list_artifacts(run_id, "figures")}
    assert figures.keys() == {
        "figures/accuracy.png",
        "figures/damage.png",
        "figures/norms.png",
        "figures/partition.png",
    }
    assert min(figures.values()) > 5_000
    address = f"{tracked.info.artifact_uri}/config.yaml"
    config = Path(mlflow.artifacts.download_artifacts(address, dst_path=str(tmp_path)))
    again = compose(beneath=OmegaConf.load(config))
    assert identity(again) == tracked.data.tags["lit_byz.identity"]
    assert identity(compose([f"config={config}"])) == tracked.data.tags["lit_byz.identity"]


def test_figures_may_be_left_out(tmp_path: Path) -> None:
    """The run is the same one, and has all else."""
    paths, identities = [], []
    for name, figures in (("with", "true"), ("without", "false")):
        result = quick(tmp_path / name, "train.steps=4", f"tracking.figures={figures}")
        client = open_store(new_store(tmp_path / name)).client
        paths.append({item.path for item in client.list_artifacts(result.run_id)})
        identities.append(result.identity)
    assert paths == [{"config.yaml", "figures", "model"}, {"config.yaml", "model"}]
    assert identities[0] == identities[1]


def test_where_it_came_from(tracked: Run, result: TrainResult) -> None:
    tags = tracked.data.tags
    assert tags["mlflow.source.git.commit"] == git_commit()
    versions = json.loads(tags["lit_byz.versions"])
    assert versions["torch"] == version("torch")
    assert versions.keys() >= {"lit_byz", "lightning", "mlflow", "numpy"}
    assert tags["lit_byz.status"] == "finished"
    assert tags["lit_byz.gradients"] == result.gradients
    assert result.gradients in ("loop", "joined", "vmap")
    asked = [*_runs.QUICK, *SETTINGS]
    code = identify(compose_plain(asked))
    assert tags["lit_byz.settings"] == code.settings
    assert tags["lit_byz.code"] == tracked.data.params["lit_byz.code"] == code.code
    assert tags["lit_byz.identity"] == code.digest == result.identity
    assert tags["lit_byz.environment"] == environment(compose_plain(asked))
    assert tags["lit_byz.kind"] == "run"
    assert tags["mlflow.runName"] == "foe · seed 1 · arc · cwtm∘nnm · digits dirichlet 0.1 · f=1"
    ((dataset,),) = [[i.dataset for i in tracked.inputs.dataset_inputs]]
    assert dataset.name == "digits"
    profile = json.loads(dataset.profile)
    assert (profile["train"], profile["test"]) == (1440, 357)
    assert profile["partition"]["name"] == "dirichlet"


def test_no_clipping_has_no_threshold(folder: Path) -> None:
    """Its threshold is infinite, which a store would keep as 1.8e308."""
    result = quick(folder, "train.steps=3", "clip=none", "attack=sf")
    assert _runs.steps_of(folder, result.run_id, "arc/threshold") == []
    assert _runs.steps_of(folder, result.run_id, "clip/threshold") == []
    assert _runs.steps_of(folder, result.run_id, "attack/factor") == []
    assert all(math.isfinite(v) for v in _runs.values_of(folder, result.run_id).values())
    assert max(map(abs, _runs.values_of(folder, result.run_id).values())) < 1e6
    assert _runs.steps_of(folder, result.run_id, "server/clipped_honest") == [0, 1, 2]


@pytest.mark.usefixtures("users_parts")
def test_batch_norm_is_noted(folder: Path) -> None:
    result = quick(folder, "train.steps=1", f"model={_runs.MODULE}.TinyNet", "attack=sf")
    assert "mean of honest workers" in _runs.tags_of(folder, result.run_id)["lit_byz.batch_norm"]


def test_worst_case_of_a_cell(folder: Path, store: Store) -> None:
    """Two attacks and two seeds below one cell: what the ledger writes is right after every run."""
    base = {"model": "logreg", "clip": "none", "train": {"steps": 4, "eval_every": 4}}
    base |= {"workers": {"honest": 5, "batch_size": 8}}
    base |= {"tracking": {"uri": new_store(folder), "figures": False}}
    four = points(Grid(base, {"attack": ["sf", "foe"], "seed": [1, 2]}))
    ledger = Ledger(store, store.experiment("lit_byz"))
    ledger.open_study(StudyRecord("sweep", "a key", "a sweep"))
    runs = [PlannedRun(p.attack, p.seed, p.identity, p.steps) for p in four]
    cell = CellRecord("a cell", runs)
    cell_id = ledger.open_cell(cell, four)
    smallest = {1: 1.0, 2: 1.0}
    for count, place in enumerate((0, 3, 2, 1), start=1):
        point = four[place]
        ended = train(point.config, parent_run_id=cell_id)
        assert ended.identity == point.identity
        smallest[point.seed] = min(ended.max_accuracy, smallest[point.seed])
        known = {i: f.outcome for i, f in ledger.look_up(four).items() if f.outcome is not None}
        ledger.write_cell(cell, known)
        found = store.client.get_run(cell_id).data.metrics
        assert found["worst_case/runs"] == count
        assert found["worst_case/missing"] == 4 - count
        assert found["worst_case/at_most"] == pytest.approx(sum(smallest.values()) / 2)
        assert ("worst_case/max_accuracy" in found) is (count == 4)
    assert found["worst_case/max_accuracy"] == pytest.approx(sum(smallest.values()) / 2)
    for seed, accuracy in smallest.items():
        assert found[f"worst_case/seed_{seed}"] == accuracy
    spread = abs(smallest[1] - smallest[2]) / math.sqrt(2)
    assert found["worst_case/max_accuracy_std"] == pytest.approx(spread)
    assert _runs.status_of(folder, cell_id) == "FINISHED"
    assert _runs.tags_of(folder, ended.run_id)["mlflow.parentRunId"] == cell_id
