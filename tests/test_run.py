"""What makes a run of all tests quick holds while tests run."""

import gc
import subprocess
import sys

import pytest


def test_collected_tests_are_frozen_for_the_garbage_collector(
    request: pytest.FixtureRequest,
) -> None:
    """A full collection after each coroutine test would take 0.3 s otherwise."""
    assert not any(each is request.node for each in gc.get_objects())


def test_processes_that_tests_start_keep_compiled_modules() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (sys.dont_write_bytecode, shown.stdout) == (False, "False\n")
