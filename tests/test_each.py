"""The loop inside a test: every case is run, the one that fails is named."""

import pytest

from tests._each import each


def test_every_case_is_run() -> None:
    seen: list[tuple[int, int, str, str]] = []

    @each("n, f", [(3, 1), (5, 2)])
    @each("kind", ["a", "b"])
    def check(n: int, f: int, kind: str, fixture: str) -> None:
        seen.append((n, f, kind, fixture))

    check(fixture="x")
    assert seen == [(3, 1, "a", "x"), (3, 1, "b", "x"), (5, 2, "a", "x"), (5, 2, "b", "x")]


@each("n, f", [(3, 1), (5, 2)])
@each("kind", ["a", "b"])
def test_fixtures_are_given_and_it_is_one_test(
    n: int, f: int, kind: str, request: pytest.FixtureRequest
) -> None:
    assert request.node.name == "test_fixtures_are_given_and_it_is_one_test"


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
