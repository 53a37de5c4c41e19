"""A PostgreSQL that does not let us in says so at once: nobody waits for it."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from lit_byz.errors import RunFailed
from lit_byz.tracking.ledger import Ledger
from tests.services._postgresql import SECRET, PostgreSQL, postgresql

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgreSQL]:
    with postgresql() as server:
        yield server


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        (quote(SECRET, safe=""), "a-wrong-one", "password authentication failed"),
        ("/postgres", "/nowhere", 'database "nowhere" does not exist'),
    ],
)
def test_not_let_in(postgres: PostgreSQL, right: str, wrong: str, reason: str) -> None:
    uri = postgres.address().replace(right, wrong)
    tracking = {"enabled": True, "uri": uri, "experiment": "lit_byz", "patience": 2.0}
    with pytest.raises(RunFailed, match=reason) as told:
        Ledger.of(tracking)
    # Not StoreGone, which is what those raise who have waited.
    assert type(told.value) is RunFailed
    assert ": cannot be opened: " in str(told.value)
    assert "a-wrong-one" not in str(told.value)
