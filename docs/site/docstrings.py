"""Docstrings as Markdown: doctests become code blocks, Sphinx's roles plain names."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`~?([^`]+)`")
PROMPT = re.compile(r"^(?P<indent> *)>>> ")


class Readable(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)


def readable(text: str) -> str:
    """Fences around doctests, which go on to the next empty line; names without their roles."""
    lines: list[str] = []
    inside = False
    for line in ROLE.sub(r"`\1`", text).split("\n"):
        if not inside and PROMPT.match(line):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
