"""New, empty MLflow stores. MLflow takes seconds to make its tables, so they are made once."""

import atexit
import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from lit_byz.tracking import open_store

DATABASE = "mlflow.db"


def uri(folder: Path) -> str:
    return f"sqlite:///{folder}/{DATABASE}"


def new_store(folder: Path) -> str:
    """The address of a store in ``folder``: a copy of an empty one, unless there is one already."""
    if not (folder / DATABASE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(_empty(), folder / DATABASE)
    return uri(folder)


@cache
def _empty() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lit_byz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    open_store(uri(folder))
    database = sqlite3.connect(folder / DATABASE)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # all of it into the one file
    database.close()
    return folder / DATABASE
