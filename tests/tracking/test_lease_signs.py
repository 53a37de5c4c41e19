"""Signs of life of leases: what they cost, what they prove, and who goes by which number."""

from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from lit_byz.errors import BadRequest
from lit_byz.tracking import Store, Tracker, open_store
from lit_byz.tracking import logger as logger_module
from lit_byz.tracking.claims import ClaimLost
from lit_byz.tracking.leases import (
    BEAT,
    LASTS,
    LOOK_EVERY,
    OWNER,
    PREFIX,
    PROCESS,
    VARIABLE,
    Lease,
    LeaseClaims,
    _Seen,
    lease_seconds,
    leases_of,
)
from tests.tracking._stores import new_store

ELSEWHERE = "another-machine|boot|space|1|1"


class Counting:
    """A client that counts what it is asked, and does not write where it is told not to."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked: list[str] = []
        self.refuses = False

    def __getattr__(self, name: str) -> Any:
        def ask(*args: Any, **kwargs: Any) -> Any:
            self.asked.append(name)
            if self.refuses and name == "set_registered_model_tag":
                raise MlflowException("cannot write: the database is read-only")
            return getattr(self._client, name)(*args, **kwargs)

        return ask


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv(VARIABLE, "100000")  # no sign is late, whatever this machine does
    return open_store(new_store(tmp_path))


@pytest.fixture
def client(store: Store) -> Any:
    return Counting(store.asked_once)


def made(client: Any, number: int = 1, **more: Any) -> Lease:
    """A lease that gives its signs when it is told to."""
    lease = Lease(client, "run", number, **more)
    assert lease.make()
    return lease


def left_by(store: Store, number: int = 1, **tags: str) -> None:
    given = {OWNER: "somebody", BEAT: "7", PROCESS: ELSEWHERE, **tags}
    store.asked_once.create_registered_model(f"{PREFIX}.run.{number}", tags=given)


def test_a_sign_in_time_is_one_request(client: Any) -> None:
    lease = made(client)
    client.asked.clear()
    for _ in range(2 * LOOK_EVERY):
        lease._give_sign()
        lease.check()
    assert client.asked.count("set_registered_model_tag") == 2 * LOOK_EVERY
    assert client.asked.count("search_registered_models") == 2


def test_after_a_late_sign_it_is_looked(store: Store, client: Any) -> None:
    lease = made(client)
    left_by(store, 2)
    lease._give_sign()
    lease.check()  # which is right as far as anybody could know: 2 was made without waiting
    lease._confirmed = -1e9
    lease._give_sign()
    with pytest.raises(ClaimLost):
        lease.check()


def test_a_sign_that_is_not_written_proves_nothing(store: Store, client: Any) -> None:
    lease = made(client)
    client.refuses = True
    lease._confirmed = -1e9
    lease._give_sign()
    lease.check()  # by a look
    left_by(store, 2)
    with pytest.raises(ClaimLost):
        lease.check()  # by another one: reading has not counted as a sign


def test_one_that_was_deleted_is_lost(store: Store, client: Any) -> None:
    lease = made(client)
    store.asked_once.delete_registered_model(lease.model)
    lease._give_sign()
    with pytest.raises(ClaimLost):
        lease.check()


def test_who_takes_over_withdraws_if_the_holder_lives(store: Store, client: Any) -> None:
    """Its sign came between the last look of the other one and the making of the next lease."""
    holder = made(client)
    given_up = (1, holder.owner, "0")
    holder._give_sign()
    other = made(client, 2, over=given_up)
    assert not other.start()
    assert set(leases_of(store.asked_once, "run")) == {1}
    holder._give_sign()
    holder.check()


def test_who_watches_goes_by_the_holders_number(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    left_by(store, **{LASTS: "1000"})
    claims = LeaseClaims(store.asked_once, store.patience.call)
    assert claims.take("run") is None
    seen = claims._seen["run"]
    claims._seen["run"] = _Seen(seen.state, seen.at, 500.0)
    assert claims.take("run") is None, "500 s would be enough by the number of who watches"
    claims._seen["run"].unchanged = 1000.0
    claim = claims.take("run")
    assert claim is not None
    claim.give_back()


@pytest.mark.parametrize("given", ["0", "-5", "nan", "inf", "a minute", ""])
def test_a_lease_of_no_length_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(BadRequest, match=f"{VARIABLE} = "):
        lease_seconds()


class LostAfter:
    """A claim that is lost after so many looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def check(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            raise ClaimLost("gone")

    def give_back(self) -> None:
        return


@pytest.fixture
def run_id(store: Store) -> str:
    return str(store.client.create_run(store.experiment("tests")).info.run_id)


def test_a_backlog_is_not_written_to_its_end_by_who_has_lost_the_run(
    store: Store, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger_module, "METRICS_AT_ONCE", 2)
    monkeypatch.setattr(logger_module, "MOST_WAIT", 120.0)
    tracker = Tracker(store, run_id, LostAfter(3))
    tracker.restore({"x": [(step, 0.5) for step in range(20)]})
    with pytest.raises(ClaimLost):
        tracker.save()
    assert [step for step, _ in store.history(run_id, "x")] == list(range(6))


def test_neither_files_nor_settings_are(store: Store, run_id: str, tmp_path: Path) -> None:
    tracker = Tracker(store, run_id, LostAfter(0))
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(ClaimLost):
        tracker.save_file(tmp_path / "note.txt")
    with pytest.raises(ClaimLost):
        tracker.write_settings({"a": 1})
    assert store.client.list_artifacts(run_id) == []
    assert store.client.get_run(run_id).data.params == {}
