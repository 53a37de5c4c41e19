"""What attacks and training share with the server: vectors, and what of them is finite."""

from lit_byz.robust._aggregator import Prepared
from lit_byz.robust._base import NothingFinite, on_finite_rows
from lit_byz.robust._basis import coordinate_spread, draw_columns
from lit_byz.robust._beside import Beside
from lit_byz.robust._inputs import as_rows

__all__ = [
    "Beside",
    "NothingFinite",
    "Prepared",
    "as_rows",
    "coordinate_spread",
    "draw_columns",
    "on_finite_rows",
]
