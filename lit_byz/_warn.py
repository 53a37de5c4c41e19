"""Warnings in one line."""

import inspect
import warnings

LONGEST = 500


def warn(message: str) -> None:
    """Warn of something that does not stop the work: one line, without a line of source below."""
    caller = inspect.stack(0)[1].frame.f_globals.get("__name__", "lit_byz")
    text = " ".join(message.split())
    warnings.warn_explicit(text[:LONGEST], UserWarning, caller, 0)
