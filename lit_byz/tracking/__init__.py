"""Everything that knows MLflow: the store, claims, runs, and the ledger of studies."""

from typing import TYPE_CHECKING, Any

from lit_byz.tracking.store import Store, default_uri, flatten, open_store

if TYPE_CHECKING:
    from lit_byz.tracking.history import History
    from lit_byz.tracking.logger import Tracker

__all__ = ["History", "Store", "Tracker", "default_uri", "flatten", "open_store"]


def __getattr__(name: str) -> Any:
    # A logger imports Lightning, for seconds; a command that only reads the store needs none.
    if name in ("History", "Tracker"):
        from lit_byz.tracking import logger

        return getattr(logger, name)
    raise AttributeError(f"module 'lit_byz.tracking' has no attribute '{name}'")
