"""The system's C++ compiler, if it has one."""

import os
import shutil


def compiler() -> str | None:
    """``CXX``, or the first of the usual names that is found."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    return None
