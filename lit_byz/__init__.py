"""Byzantine-robust distributed learning with adaptive robust clipping."""

from lit_byz import _torchvision as _torchvision  # must come before anything that imports lightning

__version__ = "0.1.0"
