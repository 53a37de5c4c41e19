"""Many cases in one test."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def each(names: str, values: Iterable[Any]) -> Callable[[Test], Test]:
    """As ``pytest.mark.parametrize``, but a loop inside the test.

    To collect, set up and report a test takes longer than most of our cases take to run. The case
    that failed is named below the traceback.
    """
    arguments = names.replace(" ", "").split(",")
    given = [value if len(arguments) > 1 else (value,) for value in values]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for chosen in given:
                case = dict(zip(arguments, chosen, strict=True))
                try:
                    test(**fixtures, **case)
                except BaseException as error:  # pytest's own failures are no Exception
                    described = (f"{name}={value!r}" for name, value in case.items())
                    error.add_note(f"case: {', '.join(described)}")
                    raise

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
