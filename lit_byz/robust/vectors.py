"""What attacks and training share with the server: vectors, and what of them is finite."""

from lit_byz.robust._aggregator import Prepared, as_server
from lit_byz.robust._base import NothingFinite, on_finite_rows
from lit_byz.robust._basis import coordinate_spread, draw_columns
from lit_byz.robust._beside import Beside
from lit_byz.robust._inputs import as_rows, as_tensor, from_numpy
from lit_byz.robust._returned import threshold_of

__all__ = [
    "Beside",
    "NothingFinite",
    "Prepared",
    "as_rows",
    "as_server",
    "as_tensor",
    "coordinate_spread",
    "draw_columns",
    "from_numpy",
    "on_finite_rows",
    "threshold_of",
]
