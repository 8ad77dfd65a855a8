"""Bytes by chance through every function of the core, compared with the pure ones.

A few tenths of a second each; `make fuzz` runs longer.
"""

import os
import time
from random import Random

import pytest

from pocketmq import native
from tests.native.both import core, functions, outcome
from tests.native.fuzzed import FUZZED

SECONDS = float(os.environ.get("POCKETMQ_FUZZ_SECONDS", "0.25"))


def test_every_function_is_fuzzed() -> None:
    assert sorted(FUZZED) == functions(core), "add it to tests/native/fuzzed.py"


@pytest.mark.parametrize("name", FUZZED)
def test_any_input_has_the_same_outcome(name: str) -> None:
    start = int(time.time()) if SECONDS > 1 else 0
    until = time.process_time() + SECONDS
    seed = start << 32
    while time.process_time() < until or seed == start << 32:
        args, options = FUZZED[name](Random(seed))
        expected = outcome(native.pure[name], *args, **options)
        found = outcome(getattr(core, name), *args, **options)
        assert found == expected, f"seed {seed}: FUZZED[{name!r}](Random({seed}))"
        seed += 1
