"""Claims on trials as locks of the database that has the trials."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from lit_byz.tracking.claims import ClaimLost, held
from lit_byz.tracking.patience import Patience
from lit_byz.tracking.trial_claims import KEEPALIVE, SessionClaims
from tests.services._postgresql import PostgreSQL, postgresql

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    with postgresql() as running:
        yield running


def claims(server: PostgreSQL) -> SessionClaims:
    """As a process of its own has them."""
    patience = Patience(server.address(), 60.0, lambda text: None)
    return SessionClaims(server.address(), patience.call)


def break_connection(broken: SessionClaims, by: SessionClaims) -> None:
    number = broken._connected().scalar(text("select pg_backend_pid()"))
    by._connected().execute(text("select pg_terminate_backend(:number, 60000)"), {"number": number})


def test_one_has_it_and_then_the_other(server: PostgreSQL) -> None:
    first, second = claims(server), claims(server)
    claim = first.take("trial")
    assert claim is not None
    assert first.take("trial") is None
    assert second.take("trial") is None
    assert second.take("another") is not None
    claim.check()
    claim.give_back()
    assert second.take("trial") is not None


def test_they_go_with_their_process(server: PostgreSQL) -> None:
    first, second = claims(server), claims(server)
    assert first.take("left") is not None
    first._connected().close()  # as its end closes it
    with held(second, "left", most=60):
        pass


def test_a_connection_that_broke_is_made_anew_with_its_locks(server: PostgreSQL) -> None:
    first, second = claims(server), claims(server)
    claim = first.take("broken")
    assert claim is not None
    break_connection(first, second)
    claim.check()
    assert second.take("broken") is None


def test_what_somebody_took_meanwhile_is_lost(server: PostgreSQL) -> None:
    first, second = claims(server), claims(server)
    claim, other = first.take("taken"), first.take("kept")
    assert claim is not None
    assert other is not None
    break_connection(first, second)
    assert second.take("taken") is not None
    with pytest.raises(ClaimLost):
        claim.check()
    other.check()
    claim.give_back()
    assert claims(server).take("taken") is None, "what is not ours stays"


def test_they_outlive_a_crash_of_the_database(server: PostgreSQL) -> None:
    first, second = claims(server), claims(server)
    claim = first.take("crashed")
    assert claim is not None
    server.crash()
    server.start()
    claim.check()
    assert second.take("crashed") is None


def test_the_database_looks_whether_we_are_there(server: PostgreSQL) -> None:
    session = claims(server)._connected()
    found = {name: session.scalar(text(f"show {name}")) for name in KEEPALIVE}
    assert found == {name: str(value) for name, value in KEEPALIVE.items()}
