"""The loop inside a test: every case is run, the one that fails is named."""

import pytest

from tests._each import each

seen: list[tuple[int, int, str]] = []


@each("n, f", [(3, 1), (5, 2)])
@each("kind", ["a", "b"])
def test_every_case_is_run(n: int, f: int, kind: str, request: pytest.FixtureRequest) -> None:
    assert request.node.name == "test_every_case_is_run"
    seen.append((n, f, kind))
    assert seen == [(3, 1, "a"), (3, 1, "b"), (5, 2, "a"), (5, 2, "b")][: len(seen)]


@pytest.mark.parametrize("failure", [AssertionError, pytest.fail.Exception])
def test_a_failure_names_its_case(failure: type[BaseException]) -> None:
    @each("n, f", [(3, 1), (5, 2)])
    @each("kind", ["a", "b"])
    def check(n: int, f: int, kind: str) -> None:
        if (n, kind) == (5, "a"):
            raise failure("wrong")

    with pytest.raises(failure) as caught:
        check()
    assert caught.value.__notes__ == ["case: kind='a'", "case: n=5, f=2"]
