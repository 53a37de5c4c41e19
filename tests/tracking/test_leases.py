"""Leases: claims that a store keeps, however little its users share."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lit_byz.tracking import Store, leases, open_store
from lit_byz.tracking.claims import ClaimLost, held
from lit_byz.tracking.leases import (
    BEAT,
    OWNER,
    PREFIX,
    PROCESS,
    VARIABLE,
    LeaseClaims,
    leases_of,
    this_process,
)
from tests.cli._kills import wait_until
from tests.tracking._stores import new_store

ELSEWHERE = "another-machine|boot|space|1|1"
# Seconds; an eighth of it, the most that counts between two looks, is a number without rounding.
LEASE = 0.5


class Clock:
    """Time passes when a test says so: a machine that is slow has as much of it."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(leases, "now", found)
    return found


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv(VARIABLE, str(LEASE))
    return open_store(new_store(tmp_path))


def claims(store: Store) -> LeaseClaims:
    """As another process has them."""
    return LeaseClaims(store.asked_once, store.patience.call)


def left_by(store: Store, process: str, name: str = "run", number: int = 1) -> None:
    """A lease whose holder gives no sign of life."""
    tags = {OWNER: "somebody", BEAT: "7", PROCESS: process}
    store.asked_once.create_registered_model(f"{PREFIX}.{name}.{number}", tags=tags)


def test_one_has_it_and_then_the_other(store: Store) -> None:
    first, second = claims(store), claims(store)
    claim = first.take("run")
    assert claim is not None
    assert second.take("run") is None
    assert second.take("another") is not None
    claim.check()
    claim.give_back()
    assert not leases_of(store.asked_once, "run")
    with held(second, "run") as other:
        other.check()
    assert not leases_of(store.asked_once, "run")


def test_of_many_at_once_one_has_it(store: Store) -> None:
    everybody = [claims(store) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda one: one.take("run"), everybody))
    assert sum(claim is not None for claim in taken) == 1


def test_names_that_begin_alike(store: Store) -> None:
    assert claims(store).take("run") is not None
    assert claims(store).take("run.1") is not None
    assert claims(store).take("ru_") is not None  # SQL's sign for any character
    assert claims(store).take("run") is None


def test_a_holder_that_lives_keeps_it(store: Store, clock: Clock) -> None:
    """For several times as long as a lease lasts without a sign of life."""
    claim, other = claims(store).take("run"), claims(store)
    assert claim is not None

    def beat() -> str:
        found: str = store.patience.call(leases_of, store.asked_once, "run")[1].tags[BEAT]
        return found

    for _ in range(4):
        before = beat()
        wait_until("it gives a sign of life", lambda before=before: beat() != before, 60)
        for _ in range(8):
            assert other.take("run") is None
            clock.seconds += LEASE / 8
    assert clock.seconds == 4 * LEASE
    claim.check()
    claim.give_back()


def test_one_without_a_sign_of_life_is_taken_over(store: Store, clock: Clock) -> None:
    left_by(store, ELSEWHERE)
    other = claims(store)
    for _ in range(8):
        assert other.take("run") is None
        clock.seconds += LEASE / 8
    assert other.take("run") is not None
    assert max(leases_of(store.asked_once, "run")) == 2


def test_time_in_which_nobody_looked_does_not_count(store: Store, clock: Clock) -> None:
    """The store may have been away then, for the holder too."""
    left_by(store, ELSEWHERE)
    other = claims(store)
    assert other.take("run") is None
    clock.seconds += 100 * LEASE
    assert other.take("run") is None


def test_a_process_that_died_here_is_not_waited_for(store: Store) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    *machine, _, started = this_process().split("|")
    left_by(store, "|".join([*machine, str(ended.pid), started]))
    assert claims(store).take("run") is not None
    left_by(store, this_process(), "ours")
    assert claims(store).take("ours") is None


def test_who_has_lost_it_hears_of_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = claims(store).take("run")
    assert claim is not None
    left_by(store, ELSEWHERE, number=2)
    monkeypatch.setattr(claim, "_confirmed", -1e9)  # as after a long sleep
    with pytest.raises(ClaimLost):
        claim.check()
    claim.give_back()
    assert set(leases_of(store.asked_once, "run")) == {1, 2}, "what is not ours stays"


def test_who_took_it_over_clears_up(store: Store) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    *machine, _, started = this_process().split("|")
    left_by(store, "|".join([*machine, str(ended.pid), started]))
    claim = claims(store).take("run")
    assert claim is not None
    claim.give_back()
    assert not leases_of(store.asked_once, "run")
