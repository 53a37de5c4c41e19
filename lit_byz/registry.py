"""Components by name: one registry per kind (rule, attack, data set, …)."""

import difflib
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from lit_byz.errors import BadRequest

Component = TypeVar("Component", bound=type)


def nearest(word: str, options: Iterable[str]) -> str:
    """A ``did you mean`` clause for a misspelt word, or the list of what there is."""
    known = sorted(options)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"there is {', '.join(known)}" if known else "there is none"


class Registry:
    """Classes of one kind, by name. A dotted path reaches a class that is registered nowhere.

    >>> shapes = Registry("shape")
    >>> @shapes.register("circle")
    ... class Circle: ...
    >>> shapes["circle"] is Circle
    True
    >>> shapes["collections.OrderedDict"].__name__
    'OrderedDict'
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: dict[str, type] = {}

    def register(self, name: str) -> Callable[[Component], Component]:
        """Class decorator; the same name twice is an error."""

        def add(component: Component) -> Component:
            known = self._classes.get(name)
            if known is not None:
                raise ValueError(f"{self.kind} '{name}' is registered twice: {known}, {component}")
            self._classes[name] = component
            return component

        return add

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._classes))

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __getitem__(self, name: str) -> type:
        """The class registered as ``name``, or the one at the dotted path ``name``."""
        if name in self._classes:
            return self._classes[name]
        if "." in name:
            return self._import(name)
        raise BadRequest(f"unknown {self.kind} '{name}': {nearest(name, self)}")

    def name_of(self, component: type) -> str:
        """The name to write into a config: registered, or else the dotted path."""
        for name, known in self._classes.items():
            if known is component:
                return name
        return f"{component.__module__}.{component.__qualname__}"

    def _import(self, path: str) -> type:
        if not all(part.isidentifier() for part in path.split(".")):
            raise BadRequest(
                f"{self.kind} '{path}': must be a dotted path such as my_module.MyClass"
            )
        module_name, _, attribute = path.rpartition(".")
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise BadRequest(
                f"{self.kind} '{path}': cannot import {module_name}: {error}"
            ) from error
        component = getattr(module, attribute, None)
        if component is None:
            options = [
                name
                for name, value in vars(module).items()
                if isinstance(value, type) and not name.startswith("_")
            ]
            raise BadRequest(
                f"{self.kind} '{path}': {module_name} has no '{attribute}'; "
                f"{nearest(attribute, options)}"
            )
        if not isinstance(component, type):
            raise BadRequest(f"{self.kind} '{path}' is a {type(component).__name__}, not a class")
        return component
