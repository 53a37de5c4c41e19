"""What a cluster of Ray is asked for, as its nodes come and go; and where its workers work."""

import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify
from lit_byz.errors import BadRequest
from lit_byz.execution.ray_tasks import _Work
from lit_byz.execution.ray_worker import Place
from lit_byz.execution.tasks import Progress, Task


class Cluster:
    """As much of Ray as hands tasks to nodes; ``cpus`` are those of its nodes."""

    def __init__(self, *cpus: int) -> None:
        self.cpus = cpus
        self.given = 0

    def nodes(self) -> list[dict[str, Any]]:
        head = {"Alive": True, "Resources": {}}
        return [head, *({"Alive": True, "Resources": {"CPU": n}} for n in self.cpus)]

    def remote(self, *_: Any, **__: Any) -> Any:
        def give(*_: Any) -> int:
            self.given += 1
            return self.given

        return lambda function: type("Remote", (), {"remote": staticmethod(give)})


def work(cluster: Cluster) -> tuple[_Work, list[Any]]:
    told: list[Any] = []
    place = Place("/nowhere", [], "sweep.py", {})
    return _Work(cluster, None, told.append, _place=place), told


def task(cpus: int) -> Task:
    plain = compose_plain([f"resources.cpus={cpus}"])
    return Task(plain, identify(plain))


def test_a_task_that_was_lost_with_the_last_node_waits_for_another() -> None:
    cluster = Cluster(4)
    begun, told = work(cluster)
    begun.begin(task(2))
    cluster.cpus = ()
    begun.begin(task(2), tries=1)
    begun.begin(task(2))
    assert cluster.given == 3
    assert not told


def test_what_no_node_has_is_refused_at_once() -> None:
    begun, _ = work(Cluster(4, 2))
    with pytest.raises(BadRequest, match=r"^resources\.cpus = 8, .* no node of the Ray cluster"):
        begun.begin(task(8))


def test_a_cluster_whose_nodes_are_still_to_come() -> None:
    cluster = Cluster()
    begun, told = work(cluster)
    begun.begin(task(8))
    assert cluster.given == 1
    (note,) = told
    assert isinstance(note, Progress)
    assert note.note == "no node of the Ray cluster computes yet, waiting for one"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


PLACE = Place(None, [], "sweep.py", {}, {"my_rules.py": "x = 1\n"})


def test_modules_lie_where_nobody_else_can_write(temporary: Path) -> None:
    folder = PLACE._furnish("a node")
    assert (folder / "my_rules.py").read_text() == "x = 1\n"
    (own,) = temporary.iterdir()
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    own.chmod(0o777)
    assert PLACE._furnish("a node") == folder
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


def test_a_folder_of_somebody_elses_is_not_taken(temporary: Path) -> None:
    (own,) = (PLACE._furnish("a node").parents[1],)
    theirs = own.rename(temporary / "theirs")
    own.symlink_to(theirs)
    with pytest.raises(PermissionError, match="belongs to another user"):
        PLACE._furnish("a node")
