"""Claims on trials: beside the trials, honoured, and looked at before anything is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from lit_byz.config.ranges import Range
from lit_byz.config.search_space import Problem
from lit_byz.tracking import Store, open_store
from lit_byz.tracking.claims import ClaimLost
from lit_byz.tracking.leases import LeaseClaims
from lit_byz.tracking.trials import TrialBook, open_book
from tests.tracking._ledgers import BASE
from tests.tracking._stores import new_store

RUNS: dict[str, Any] = {"attack": ["sf"], "seed": [1]}


def problem(trials: int) -> Problem:
    space: Any = {"clip.C": Range(0.01, 100.0, log=True)}
    return Problem({**BASE, "clip": "static"}, RUNS, space, trials, {})


def book(store: Store, url: str | None = None, trials: int = 4) -> TrialBook:
    return open_book(problem(trials), store, name="a study", url=url)


def shared(folder: Path) -> str:
    return f"sqlite:///{folder}/study.db"


class Lost:
    """A claim that somebody else has by now."""

    def check(self) -> None:
        raise ClaimLost("gone")

    def give_back(self) -> None:
        return


def test_two_journals_below_one_server_have_nothing_to_do_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each folder has a study of its own, though both keep their runs in one store."""
    kept = open_store(new_store(tmp_path / "store"))
    leases = LeaseClaims(kept.asked_once, kept.patience.call)
    server = replace(kept, uri="http://127.0.0.1:9", claims=leases)
    folders = [tmp_path / name for name in ("first", "second")]
    books = []
    for folder in folders:
        folder.mkdir()
        monkeypatch.chdir(folder)
        books.append(book(server))
        taken = books[-1].take()
        assert taken is not None
        assert taken.number == 0
    for folder, one in zip(reversed(folders), reversed(books), strict=True):
        monkeypatch.chdir(folder)
        one.note(0, {})
        one.complete(0, 0.5, 0)
        assert [trial.state for trial in one.trials()] == ["complete"]


def test_two_stores_with_one_storage_hear_of_each_other(tmp_path: Path) -> None:
    stores = [open_store(new_store(tmp_path / name)) for name in ("first", "second")]
    first, second = (book(store, shared(tmp_path)) for store in stores)
    numbers = [taken.number for one in (first, second) if (taken := one.take()) is not None]
    assert numbers == [0, 1]
    first.complete(0, 0.5, 0)
    second.complete(1, 0.4, 0)
    assert [trial.value for trial in first.trials()] == [0.5, 0.4]


def test_who_has_lost_a_trial_writes_no_more_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = book(open_store(new_store(tmp_path)), shared(tmp_path))
    for end in ("complete", "prune", "fail", "note"):
        taken = one.take()
        assert taken is not None
        one.release(taken.number)
        monkeypatch.setitem(one._held, taken.number, Lost())
        arguments: dict[str, tuple[Any, ...]] = {"fail": (0,), "note": ({"a run": {}},)}
        getattr(one, end)(taken.number, *arguments.get(end, (0.5, 0)))
        one.release(taken.number)  # which is said again at the end, and is no error
        stored = one.trials()[taken.number]
        assert (stored.state, stored.runs) == ("running", {})


def test_a_trial_that_somebody_else_has_ended_is_no_error(tmp_path: Path) -> None:
    """Both had it: a machine that slept finds it finished."""
    one = book(open_store(new_store(tmp_path)), shared(tmp_path))
    taken = one.take()
    assert taken is not None
    one.study.tell(taken.number, 0.7)
    one.note(taken.number, {"a run": {}})
    one.complete(taken.number, 0.5, 0)
    assert one.trials()[0].value == 0.7


def test_a_trial_is_made_once_though_the_answer_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = book(open_store(new_store(tmp_path)), shared(tmp_path))
    add = one.study.add_trial
    answers = iter([False])

    def unanswered(trial: Any) -> None:
        add(trial)
        if not next(answers, True):
            raise OperationalError("insert", {}, Exception("server closed the connection"))

    monkeypatch.setattr(one.study, "add_trial", unanswered)
    monkeypatch.setattr(one.patience, "tell", lambda text: None)
    taken = one.take()
    assert taken is not None
    assert [trial.number for trial in one.trials()] == [taken.number] == [0]
    again = one.take()
    assert again is not None
    assert again.number == 1


def test_a_trial_of_somebody_else_is_waited_for_and_taken_up(tmp_path: Path) -> None:
    """Whoever looks once at the last trial of a study does not see that its process goes."""
    stores = [open_store(new_store(tmp_path / name)) for name in ("first", "second")]
    first, second = (book(store, shared(tmp_path), trials=1) for store in stores)
    assert first.take() is not None
    assert second.take() is None
    assert second.wait_for_others()
    first.release(0)  # as if it were killed
    taken = second.take()
    assert taken is not None
    assert taken.number == 0
    assert not second.wait_for_others(), "there is none but ours"
    second.complete(0, 0.5, 0)
    assert not first.wait_for_others()


def test_who_is_in_a_hurry_waits_for_nobody(tmp_path: Path) -> None:
    stores = [open_store(new_store(tmp_path / name)) for name in ("first", "second")]
    first, second = (book(store, shared(tmp_path), trials=1) for store in stores)
    assert first.take() is not None
    stores[1].patience.hurried = True
    assert not second.wait_for_others()
