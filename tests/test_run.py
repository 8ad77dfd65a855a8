"""What makes a run of all tests quick holds while tests run."""

import gc
import subprocess
import sys

import pytest

from tests.loops import set_aside


def test_collected_tests_are_frozen_for_the_garbage_collector(
    request: pytest.FixtureRequest,
) -> None:
    """A full collection after each coroutine test would take 0.3 s otherwise."""
    assert not is_seen(request.node)


def is_seen(thing: object) -> bool:
    """Return whether a collection would look at it."""
    return any(each is thing for each in gc.get_objects())


async def test_what_was_there_before_a_coroutine_test_is_frozen(
    request: pytest.FixtureRequest,
) -> None:
    before = [[0]]
    assert is_seen(before)
    set_aside(request.node)
    after = [[0]]
    assert (is_seen(before), is_seen(after)) == (False, True)


@pytest.fixture
def made() -> list[list[int]]:
    return [[0]]


async def test_what_fixtures_make_for_a_coroutine_test_is_not_frozen(made: list[list[int]]) -> None:
    """It may be dropped while it is open, and has to complain then."""
    assert is_seen(made)


def test_what_a_plain_test_has_is_not_frozen(request: pytest.FixtureRequest) -> None:
    before = [[0]]
    set_aside(request.node)
    assert is_seen(before)


def test_processes_that_tests_start_keep_compiled_modules() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (sys.dont_write_bytecode, shown.stdout) == (False, "False\n")
