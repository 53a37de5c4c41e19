"""Passwords of addresses: hidden in texts, settings and errors, whatever characters they have."""

import time

from hypothesis import given
from hypothesis import strategies as st

from lit_byz._passwords import without_password, without_passwords, without_secrets_of
from tests._each import each

SECRET = "SeCrEt"
PART = st.text("abZ09/@:?#&=%+;,.-_~!$'\"()[]*", max_size=6)
PASSWORDS = st.builds(lambda before, after: f"{before}{SECRET}{after}", PART, PART)
FORMS = (
    "postgresql://me:{}@host/db",
    "postgresql://me@server:{}@host:5432/db?sslmode=require",
    "postgresql+psycopg2://:{}@host",
    "http://me:{}@host:5000/path",
    "mysql://me:{}@host/db?charset=utf8",
)
# In a query & ends a value, so a password has to have it encoded.
QUERIES = (
    "postgresql://host/db?user=me&password={}",
    "postgresql://host:5432/db?password={}&user=me",
    "postgresql://me@host/db?sslmode=x&sslpassword={}",
    "postgresql://host/db?pass%77ord={}",
    "mssql+pyodbc:///?odbc_connect={}",
    "https://host/path?access_token={}",
)


@given(password=PASSWORDS, form=st.sampled_from(FORMS))
def test_before_the_host(password: str, form: str) -> None:
    address = form.format(password)
    for shown in (
        without_password(f"tracking.uri = {address}: cannot be opened"),
        without_passwords(address),
        without_secrets_of(f"no host '{password}' at {address}", address),
    ):
        assert SECRET not in shown
        assert "***" in shown


@given(password=PASSWORDS.map(lambda text: text.replace("&", "%26")), form=st.sampled_from(QUERIES))
def test_in_a_query(password: str, form: str) -> None:
    address = form.format(password)
    for shown in (
        without_password(f"see {address} there"),
        without_passwords({"a": [address]})["a"][0],
        without_secrets_of(f"no '{password}'", address),
    ):
        assert SECRET not in shown
        assert "***" in shown


@each(
    "text, shown",
    [
        ("postgresql://me:secret@host/runs", "postgresql://me:***@host/runs"),
        ("postgresql://me:se/cr@t@host/runs", "postgresql://me:***@host/runs"),
        ("postgresql://h/db?user=me&password=x&y=1", "postgresql://h/db?user=me&password=***&y=1"),
        ("http://user:pw@host:80/x", "http://user:***@host:80/x"),
        ("http://a:b@c and http://d:e@f", "http://a:***@c and http://d:***@f"),
        ("['postgresql://me:pw@h/db', 'x']", "['postgresql://me:***@h/db', 'x']"),
        ("http://127.0.0.1:5000/path?x=1", "http://127.0.0.1:5000/path?x=1"),
        ("sqlite:///mlruns/mlflow.db", "sqlite:///mlruns/mlflow.db"),
        ("password=hunter2 is no address", "password=hunter2 is no address"),
    ],
)
def test_what_is_left(text: str, shown: str) -> None:
    assert without_password(text) == shown


def test_a_setting_is_one_address_with_spaces_in_it() -> None:
    assert without_passwords("postgresql://me:my secret@host") == "postgresql://me:***@host"
    assert without_passwords({"a": 5, "b": None, "c": ["x://y:z@h"]}) == {
        "a": 5,
        "b": None,
        "c": ["x://y:***@h"],
    }


def test_parts_of_a_password_in_an_error() -> None:
    """A library that reads an address in its own way complains of a part of the password."""
    address = "postgresql://me:p@one/two%21@host/db"
    said = "port 'p', host 'one', or 'two!' of 'p@one/two%21'"
    assert without_secrets_of(said, address, None) == "port 'p', host '***', or '***' of '***'"


def test_long_texts_take_no_time() -> None:
    begin = time.process_time()
    for text in ("://a:", "@://a:", "?a=b", "://", "://a:@", "?password="):
        without_password(text * 20_000)
    assert time.process_time() - begin < 2
