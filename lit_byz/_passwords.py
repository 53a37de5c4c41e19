"""Passwords in addresses of databases and servers: hidden wherever somebody gets to see a text."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus, urlsplit

HIDDEN = "***"
# ``scheme://user:password@host``. People write passwords with / and @ in them, so it is the last @
# that ends one. To hide too much, such as a port with an @ somewhere behind it, does no harm.
_USER = re.compile(r"://[^:/]*:")
# ``?user=me&password=…``
_QUERY = re.compile(r"[?&;](?P<key>[^=&;?]+)=(?P<value>[^&]*)")
_SECRET_KEY = re.compile(
    r"pass|pwd|secret|token|credential|auth|odbc_connect|sig$|signature$|key$", re.IGNORECASE
)
_WORD = re.compile(r"\S+")

Span = tuple[int, int]


def without_password(text: str) -> str:
    """A text with the passwords of all addresses in it left out.

    >>> without_password("at postgresql://me:se/cr@t@host/runs?sslpassword=secret")
    'at postgresql://me:***@host/runs?sslpassword=***'
    """
    return _WORD.sub(lambda word: _without(word[0]), text) if "://" in text else text


def without_user(address: str) -> str:
    """A server's address without the user and the password: a browser asks for them itself.

    >>> without_user("http://me:secret@host:5000/runs")
    'http://host:5000/runs'
    """
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def without_passwords(plain: Any) -> Any:
    """The same for all texts of nested settings, each of which is one address or none."""
    if isinstance(plain, dict):
        return {key: without_passwords(value) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [without_passwords(value) for value in plain]
    return _without(plain) if isinstance(plain, str) else plain


def without_secrets_of(text: str, *addresses: str | None) -> str:
    """A text, such as an error's, without the passwords of these addresses or parts of them."""
    text = without_password(text)
    parts = {part for address in addresses if address for part in _secrets(address)}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, HIDDEN)
    return text


def _secrets(address: str) -> Iterator[str]:
    for begin, end in _spans(address):
        secret = address[begin:end]
        for form in (secret, unquote_plus(secret)):
            yield from [form] if len(form) > 1 else []
            # A library that reads an address in another way complains of a part of the password.
            yield from (part for part in re.split(r"[/@:?#&]", form) if len(part) > 2)


def _without(address: str) -> str:
    shown: list[str] = []
    done = 0
    for begin, end in sorted(_spans(address)):
        if begin >= done:
            shown += [address[done:begin], HIDDEN]
        done = max(done, end)
    return "".join([*shown, address[done:]])


def _spans(address: str) -> Iterator[Span]:
    """Where the passwords of an address stand."""
    if "://" not in address:
        return
    last = address.rfind("@")
    user = _USER.search(address, 0, max(last, 0))
    if user is not None:
        yield user.end(), last
    for found in _QUERY.finditer(address):
        if _SECRET_KEY.search(unquote_plus(found["key"])):
            yield found.span("value")
