"""Components by name: one registry per kind (rule, attack, data set, …)."""

import contextlib
import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeVar

from lit_byz._imports import is_path, module_of
from lit_byz.errors import BadRequest

Component = TypeVar("Component", bound=type)
Refusal = TypeVar("Refusal", bound=Exception)


def nearest(word: str, options: Iterable[str]) -> str:
    """A ``did you mean`` clause for a misspelt word, or the list of what there is."""
    known = sorted(options)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"there is {', '.join(known)}" if known else "there is none"


class Registry:
    """Classes of one kind, by name. A dotted path reaches a class that is registered nowhere.

    ``base`` is the dotted path of the class that they derive from, ``example`` a few lines of code
    that show how: a note of the error where somebody does not. What does not derive from it is
    refused before anything of it is called, and so is what does not write the method that its
    base class leaves to it: one of ``to_write``, and those of them that are abstract. Base classes
    have an ``example`` each beside their ``to_write``.

    >>> shapes = Registry("shape", "numbers.Number")
    >>> @shapes.register("circle")
    ... class Circle: ...
    >>> shapes["circle"] is Circle
    True
    >>> shapes["lit_byz.registry.Registry"]
    Traceback (most recent call last):
    lit_byz.errors.BadRequest: shape 'lit_byz.registry.Registry': must derive from numbers.Number
    """

    def __init__(self, kind: str, base: str | None = None, example: str = "") -> None:
        self.kind = kind
        self.base = base
        self.example = example
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
            return self._at(name)
        raise BadRequest(f"unknown {self.kind} '{name}': {nearest(name, self)}")

    def name_of(self, component: type) -> str:
        """The name to write into a config: registered, or else the dotted path."""
        for name, known in self._classes.items():
            if known is component:
                return name
        return f"{component.__module__}.{component.__qualname__}"

    def _at(self, path: str) -> type:
        what = f"{self.kind} '{path}'"
        if not is_path(path):
            raise BadRequest(f"{what}: must be a dotted path such as my_module.MyClass")
        # Nothing of Python's own derives from our classes, and some of it acts when it is imported.
        foreign = self.base is not None and path.partition(".")[0] in sys.stdlib_module_names
        found = object if foreign else _at_path(path, what)
        if not isinstance(found, type):
            kind = f"{what} is a {type(found).__name__}, not a class"
            raise self._refused(f"{kind} that derives from {self.base}" if self.base else kind)
        # Derived in fact: what issubclass says, a class can change.
        if self.base is not None and self._base_class not in found.__mro__[1:]:
            raise self._refused(f"{what}: must derive from {self.base}")
        self._check_written(found, what)
        return found

    @cached_property
    def _base_class(self) -> type:
        found = _at_path(str(self.base), self.kind)
        assert isinstance(found, type)
        return found

    def _check_written(self, found: type, what: str) -> None:
        """Refuse a class without the method that its base class leaves to it."""
        owner = _leaves_something(found)
        names: tuple[str, ...] = getattr(owner, "to_write", ())
        abstract = [name for name in names if name in getattr(found, "__abstractmethods__", ())]
        written = any(_static(found, name) is not _static(owner, name) for name in names)
        if not names or (written and not abstract):
            return
        name = (abstract or names)[0]
        own = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
        has = f"; it has {', '.join(own)}" if own else ""
        arguments = ", ".join(inspect.signature(getattr(owner, name)).parameters)
        method = f"{name}({arguments})"
        must = f"{what}: must write the method {method}, which {owner.__name__} leaves to it{has}"
        raise with_example(BadRequest(must), found)

    def _refused(self, message: str) -> BadRequest:
        """An error of one line, with the example as a note."""
        error = BadRequest(message)
        if self.example:
            error.add_note(self.example)
        return error


class Example(str):
    """Lines of code that show how: a note of an error that commands print, as they do no other."""

    __slots__ = ()


def with_example(error: Refusal, kind: type) -> Refusal:
    """The error, with a note: the example of the class that leaves a method to ``kind``."""
    example = vars(_leaves_something(kind)).get("example")
    if isinstance(example, str) and example:
        error.add_note(Example(example))
    return error


@contextlib.contextmanager
def shown_how(kind: type) -> Iterator[None]:
    """What is wrong with something that a ``kind`` returned says by an example how it is right."""
    try:
        yield
    except (TypeError, ValueError) as error:
        with_example(error, kind)
        raise


def example_in(error: BaseException) -> str:
    """The example that an error has as a note, or nothing."""
    return "\n".join(n for n in getattr(error, "__notes__", ()) if isinstance(n, Example))


def _leaves_something(kind: type) -> type:
    """The nearest class above that says which method is left to be written, or this one."""
    return next((each for each in kind.__mro__ if "to_write" in vars(each)), kind)


def _static(kind: type, name: str) -> object:
    return inspect.getattr_static(kind, name, None)


def _at_path(path: str, what: str) -> object:
    """What is at a dotted path; nothing is called."""
    module, attribute = module_of(path, what), path.rpartition(".")[2]
    try:
        found: object = getattr(module, attribute, None)
    except Exception as error:  # a module may look its names up by code of its own
        raise BadRequest(f"{what}: {type(error).__name__}: {error}") from error
    if found is None:
        options = [
            name
            for name, value in vars(module).items()
            if isinstance(value, type) and not name.startswith("_")
        ]
        hint = nearest(attribute, options)
        raise BadRequest(f"{what}: {module.__name__} has no '{attribute}'; {hint}")
    return found
