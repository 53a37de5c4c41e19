"""Make ``import torchvision`` work beside a torch that its binary was not built for.

torchvision's wheels on PyPI are built for CUDA. Beside a CPU-only torch their compiled operators
cannot be loaded, and ``import torchvision`` then stops at "operator torchvision::nms does not
exist"; so does ``import lightning``, which imports torchvision through torchmetrics. Nothing here
needs those operators: data sets, transforms and models are plain Python. It is enough to declare
the schemas that torchvision attaches Python code to while it is imported.

``lit_byz`` imports this module before anything else. It waits for the first import of torchvision,
so that a program that needs neither torch nor torchvision does not pay for them. Where torchvision
is healthy, absent, or already imported, it does nothing.
"""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)

# Declarations live as long as the Library object that made them.
_declared: "torch.library.Library | None" = None


def _operators_load() -> bool:
    """Whether torchvision's compiled operators are, or can be, loaded into this process."""
    import torch

    if hasattr(torch.ops.torchvision, "nms"):
        return True
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return True  # no torchvision: nothing to cure
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        binary = Path(spec.origin).with_name("_C" + suffix)
        if binary.exists():
            try:
                torch.ops.load_library(str(binary))
            except (OSError, RuntimeError):
                return False
            return hasattr(torch.ops.torchvision, "nms")
    return False


def cure() -> bool:
    """Declare the missing operators; returns whether that was necessary."""
    global _declared  # noqa: PLW0603 - one declaration per process, as torch's own registry is
    if _declared is not None or "torchvision" in sys.modules or _operators_load():
        return False
    import torch

    _declared = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        _declared.define(schema)
    return True


class _BeforeTorchvision(MetaPathFinder):
    """Cures when torchvision is about to be imported, then steps aside; it finds nothing itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            cure()


sys.meta_path.insert(0, _BeforeTorchvision())
