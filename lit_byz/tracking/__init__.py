"""Everything that knows MLflow: where the store is, writing to it, asking it."""

from lit_byz.tracking.logger import History, Tracker
from lit_byz.tracking.store import Store, default_uri, flatten, open_store

__all__ = ["History", "Store", "Tracker", "default_uri", "flatten", "open_store"]
