"""Bytes by chance through every function of the core, compared with the pure ones.

A few tenths of a second each; `make fuzz` runs longer.
"""

import os
import time
from random import Random

import pytest

from pocketmq import native
from tests.native.both import core, functions, outcome, plain
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
        outcomes = []
        for function in (native.pure[name], getattr(core, name)):
            args, options = FUZZED[name](Random(seed))  # anew: that one changes its lists
            found = outcome(function, *args, **options)
            outcomes.append((found, plain(args[-1]) if name == "take_receipts" else None))
        expected, found = outcomes
        assert found == expected, f"seed {seed}: FUZZED[{name!r}](Random({seed}))"
        seed += 1
