"""MLflow's page of a study: the view that the link names, made once."""

import json
from pathlib import Path

import pytest

from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.page import VIEW, cells_view, page_of, page_of_run, page_of_runs
from tests.tracking._ledgers import STUDY, end, make_ledger, outcomes_of, record_of, some_points


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = make_ledger(tmp_path)
    made.open_study(STUDY)
    found = some_points(tmp_path, clip=["none", "arc"])
    for cell in dict.fromkeys(point.cell for point in found):
        points = [point for point in found if point.cell == cell]
        record = record_of(points)
        run_id = made.open_cell(record, points)
        for point in points:
            end(point, "finished", 0.5, run_id)
        made.write_cell(record, outcomes_of(made, points))
    return made


def views(ledger: Ledger) -> dict[str, str]:
    tags = ledger.store.client.get_experiment(ledger.experiment_id).tags
    return {key: text for key, text in tags.items() if key.startswith(VIEW)}


def test_the_cells_of_a_study(ledger: Ledger) -> None:
    result = ledger.result(str(ledger.study_id))
    page = page_of(ledger.store, result)
    ((key, text),) = views(ledger).items()
    assert page.path == (
        f"/#/experiments/{ledger.experiment_id}/runs?workflowType=machine_learning"
        f"&viewStateShareKey={key.removeprefix(VIEW)}"
    )
    view = json.loads(text)
    columns = view["selectedColumns"]
    assert len(columns) == 4
    assert view["orderByKey"] == columns[0] == "metrics.`worst_case/max_accuracy`"
    assert view["orderByAsc"] is False
    order = [f"{view['orderByKey']} DESC"]
    shown = ledger.store.client.search_runs(
        [ledger.experiment_id], view["searchFilter"], order_by=order
    )
    assert {run.info.run_name for run in shown} == {"clip=none", "clip=arc"}
    known = {f"metrics.`{key}`" for key in shown[0].data.metrics}
    known |= {f"tags.`{key}`" for key in shown[0].data.tags}
    assert {columns[0], columns[3]} <= known
    assert columns[1] == "metrics.`worst_case/last_accuracy`"


def test_several_seeds_have_a_deviation(tmp_path: Path) -> None:
    found = make_ledger(tmp_path)
    points = some_points(tmp_path, seed=[1, 2])
    for point in points:
        end(point, "finished", 0.5)
    study = found.open_study(STUDY)
    found.open_cell(record_of(points), points)
    found.write_cell(record_of(points), outcomes_of(found, points), last=True)
    view = cells_view(found.result(study))
    assert view["selectedColumns"][1] == "metrics.`worst_case/max_accuracy_std`"


def test_a_view_is_written_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    result = ledger.result(str(ledger.study_id))
    first = page_of(ledger.store, result)

    def written(*_: object) -> None:
        raise AssertionError("it was there")

    monkeypatch.setattr(ledger.store.asked_once, "set_experiment_tag", written)
    assert page_of(ledger.store, result) == first


def test_the_command_and_the_link(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of_run(ledger.store, "3", "0123")
    link = "http://127.0.0.1:5000/#/experiments/3/runs/0123?workflowType=machine_learning"
    assert page.lines("see: ") == [
        *(f"see: lit-byz ui tracking.uri={ledger.store.uri} 0123", f"     {link}"),
    ]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", ledger.store.uri)
    assert page.command == "lit-byz ui 0123"
    assert page_of_runs(ledger.store, ledger.experiment_id).command == "lit-byz ui"
