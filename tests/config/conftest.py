"""A user's own classes and config files, outside the package."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.config._own import written

USER_MODULE = """
    import math

    from torch import nn

    from lit_byz.robust import Rule

    class TinyModel(nn.Module):
        def __init__(self, shape, classes: int, width: int = 3) -> None:
            super().__init__()
            inner = nn.Linear(math.prod(shape), width)
            self.layers = nn.Sequential(
                nn.Flatten(), inner, nn.ReLU(), nn.Linear(width, classes)
            )

        def forward(self, images):
            return self.layers(images)

    class WrongShape(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(28, 4)

        def forward(self, images):
            return self.layer(images)

    class NoModel:
        pass

    class PickyRule(Rule):
        def __init__(self, f: int, strength: float) -> None:
            if strength > 1:
                raise ValueError(f"PickyRule: strength must be at most 1, got {strength}")
            self.f, self.strength = f, strength

        def aggregate(self, x):
            return x.mean(0)
"""


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of an importable module that is no part of the package."""
    monkeypatch.syspath_prepend(tmp_path)
    with written(tmp_path, "a_users_module", USER_MODULE) as name:
        yield name


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Write a config file into the working directory's own ``configs``."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / "configs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write_file
