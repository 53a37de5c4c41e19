"""Compiled and plain passes, as for the rules."""

from tests.robust.conftest import either_path, use_kernels

__all__ = ["either_path", "use_kernels"]
