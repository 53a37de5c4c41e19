"""Byzantine-robust distributed learning with adaptive robust clipping.

>>> from lit_byz import train
>>> result = train(["dataset=digits", "model=logreg", "train.steps=5", "tracking.enabled=false"])
>>> result.status
'finished'
"""

import importlib
from typing import TYPE_CHECKING, Any

from lit_byz import _loaded
from lit_byz import _torchvision as _torchvision  # must come before anything that imports lightning

if TYPE_CHECKING:
    from lit_byz.cli.functions import breakdown as breakdown
    from lit_byz.cli.functions import init_scaling as init_scaling
    from lit_byz.cli.functions import sweep as sweep
    from lit_byz.cli.functions import tune as tune
    from lit_byz.execution.kept import load_model as load_model
    from lit_byz.execution.result import TrainResult as TrainResult
    from lit_byz.execution.run import train as train

_loaded.look_on()  # at once: of modules that are loaded before, it is not known what they said

__version__ = "0.1.0"
__all__ = ["TrainResult", "breakdown", "init_scaling", "load_model", "sweep", "train", "tune"]


# Imported when they are asked for: training imports Lightning and MLflow, and a user of a rule or
# an attack alone needs neither.
_LATE = {
    "load_model": "lit_byz.execution.kept",
    "train": "lit_byz.execution.run",
    "TrainResult": "lit_byz.execution.result",
    **dict.fromkeys(("sweep", "tune", "breakdown", "init_scaling"), "lit_byz.cli.functions"),
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'lit_byz' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
