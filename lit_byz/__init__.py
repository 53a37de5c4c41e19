"""Byzantine-robust distributed learning with adaptive robust clipping.

>>> from lit_byz import train
>>> result = train(["dataset=digits", "model=logreg", "train.steps=5", "tracking.enabled=false"])
>>> result.status
'finished'
"""

from typing import TYPE_CHECKING, Any

from lit_byz import _torchvision as _torchvision  # must come before anything that imports lightning

if TYPE_CHECKING:
    from lit_byz.execution.kept import load_model as load_model
    from lit_byz.execution.run import TrainResult as TrainResult
    from lit_byz.execution.run import train as train

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Training imports Lightning and MLflow; a user of a rule or an attack alone needs neither.
    if name in ("train", "TrainResult", "load_model"):
        from lit_byz.execution import run

        return getattr(run, name)
    raise AttributeError(f"module 'lit_byz' has no attribute '{name}'")
