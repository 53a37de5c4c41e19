"""What tests of users' own classes share: a module of theirs, and the line that refuses it."""

import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lit_byz.config.compose import compose
from lit_byz.errors import BadRequest

# A rule that multiplies by K, which is to be found above it or within its method.
RULE = """
from lit_byz.robust import Rule
{above}

class Mine(Rule):
    def aggregate(self, x):
        {inside}
        return K * x.mean(0)
"""


@contextmanager
def written(folder: Path, name: str, text: str) -> Iterator[str]:
    """The name of a module of this text in a folder, forgotten again afterwards."""
    (folder / f"{name}.py").write_text(textwrap.dedent(text))
    yield name
    sys.modules.pop(name, None)


def refused(*settings: str) -> str:
    """The one line by which settings are refused."""
    with pytest.raises(BadRequest) as caught:
        compose(settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)
