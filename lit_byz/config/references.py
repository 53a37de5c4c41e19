"""References: ``${section.key}`` in a config stands for the value of that key."""

import re
from typing import Any

from lit_byz.config import plain_yaml
from lit_byz.config.fields import LONGEST_TEXT
from lit_byz.config.settled import once
from lit_byz.errors import BadRequest

Plain = dict[str, Any]

# ``${section.key}``. OmegaConf knows more forms, of which one reads the environment: a config that
# came from elsewhere shall not.
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_MOST_REFERENCES = 8
_MISSING = "???"  # what OmegaConf takes for a value that is to come


def resolved(tree: Plain) -> Plain:
    """The tree with its ``${…}`` replaced by what they stand for."""
    references = References(tree)
    return {
        key: references.resolved(value, key, ()) if refers(value) else value
        for key, value in tree.items()
    }


@once
def refers(value: Any) -> bool:
    """Whether anything in a value may be a reference."""
    text = repr(value)
    return "${" in text or _MISSING in text


class References:
    """Replaces references; a list of references to lists of references has an end."""

    def __init__(self, tree: Plain) -> None:
        self.tree = tree
        self.left = 2 * plain_yaml.MOST_VALUES

    def resolved(self, value: Any, key: str, followed: tuple[str, ...]) -> Any:
        """A value with what its references stand for; ``followed`` are those that led here."""
        self.left -= 1
        if self.left < 0:
            raise BadRequest(f"{key}: the ${{…}} of this config stand for too many values")
        if isinstance(value, dict):
            return {k: self.resolved(v, f"{key}.{k}", followed) for k, v in value.items()}
        if isinstance(value, list):
            return [self.resolved(v, key, followed) for v in value]
        if not isinstance(value, str) or ("${" not in value and value != _MISSING):
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return self._target(whole[1], key, followed)
        text = _REFERENCE.sub(lambda found: str(self._target(found[1], key, followed)), value)
        if "${" in text or text == _MISSING or len(text) > LONGEST_TEXT:
            raise BadRequest(
                f"{key} = {value!r}: must be a value, or refer to another key as ${{seed}} does"
            )
        return text

    def _target(self, name: str, key: str, followed: tuple[str, ...]) -> Any:
        if name in followed or len(followed) > _MOST_REFERENCES:
            raise BadRequest(f"{key}: ${{{name}}} leads in a circle")
        target: Any = self.tree
        for part in name.split("."):
            if not isinstance(target, dict) or part not in target:
                raise BadRequest(f"{key}: ${{{name}}} is no key of this config")
            target = target[part]
        return self.resolved(target, key, (*followed, name))
