"""Where the trials of a study are kept: a journal beside the runs, or a database."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz._passwords import without_passwords, without_secrets_of
from lit_byz.errors import BadRequest, RunFailed

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


def check_url(url: str | None) -> None:
    """Refuse what cannot be the address of a database, before anything is made."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if url is None:
        return
    try:
        make_url(url).get_dialect()
    except (ArgumentError, ImportError, ValueError) as error:
        reason = without_secrets_of(" ".join(str(error).split()), url)
        raise BadRequest(
            f"--storage {without_passwords(url)}: must be the URL of a database, such as "
            f"sqlite:///study.db ({reason})"
        ) from error


def open_storage(folder: Path, study_name: str, url: str | None) -> "BaseStorage":
    """A journal in a folder, or the database at ``url``."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if url is None:
        path = folder / "optuna" / f"{_file_name(study_name)}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(str(path)))
    engine: dict[str, Any] = {"pool_pre_ping": True}  # the database may have been started anew
    if url.startswith("sqlite"):
        engine["connect_args"] = {"timeout": 60}
    return RDBStorage(url, engine_kwargs=engine)


@contextmanager
def reached(url: str | None) -> Iterator[None]:
    """Say in one line that a database cannot be had."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, ImportError, OSError) as error:
        if url is None:
            raise
        reason = without_secrets_of(" ".join(str(error).split()), url)[:300]
        shown = without_passwords(url)
        raise RunFailed(f"--storage {shown}: cannot be opened: {reason}") from error


def _file_name(study_name: str) -> str:
    """A study's name where it can be a file's; a marked copy of it where it cannot."""
    safe = "".join(c if c.isalnum() or c in "-_. " else "_" for c in study_name)[:100]
    return safe if safe == study_name else f"{safe}-{digest(study_name)[:8]}"


def digest(text: str) -> str:
    """A hash of a text."""
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()
