"""Leases of processes that were killed do not pile up: a store lists so many of them at most."""

from pathlib import Path

from lit_byz.tracking import open_store
from lit_byz.tracking.leases import PREFIX, PROCESS, LeaseClaims, leases_of, this_process
from tests.tracking._stores import new_store

# This process's number, of one that began at another time.
KILLED = "|".join([*this_process().split("|")[:4], "1"])


def test_who_takes_over_deletes_those_before(tmp_path: Path) -> None:
    store = open_store(new_store(tmp_path))
    claims = LeaseClaims(store.asked_once, store.patience.call)
    for number in (1, 2, 3):
        store.client.create_registered_model(f"{PREFIX}.a.{number}", tags={PROCESS: KILLED})
    claim = claims.take("a")
    assert claim is not None
    # The one that was taken over stays: its holder, should it live, sees a higher number beside it.
    assert sorted(leases_of(store.asked_once, "a")) == [3, 4]
    claim.check()
    claim.give_back()
    assert not leases_of(store.asked_once, "a")
