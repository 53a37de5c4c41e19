"""What attacks and training share with the server: vectors, and what of them is finite."""

from lit_byz.robust._aggregator import Prepared
from lit_byz.robust._base import NothingFinite, on_finite_rows
from lit_byz.robust._basis import coordinate_spread
from lit_byz.robust._inputs import as_rows

__all__ = ["NothingFinite", "Prepared", "as_rows", "coordinate_spread", "on_finite_rows"]
