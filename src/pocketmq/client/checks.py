"""Whether a number can be meant: for options, which are checked when they are made."""

import math

from pocketmq.errors import InvalidInput

LONGEST = 7 * 24 * 3600.0
"""No interval or timeout is longer than a week: a larger number is most likely milliseconds."""


def check_seconds(name: str, value: float, *, at_least: float = 0.0) -> None:
    """Raise `InvalidInput` unless `value` is a sensible number of seconds."""
    if not is_number(value) or not math.isfinite(value) or not at_least <= value <= LONGEST:
        raise InvalidInput(f"{name} is in seconds, from {at_least:g} to {LONGEST:g}, not {value!r}")


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raise `InvalidInput` unless `value` lies between two numbers, both allowed."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidInput(f"{name} is from {low} to {high}, not {value!r}")


def is_number(value: object) -> bool:
    """Tell whether something can count: no text, and no True either."""
    return isinstance(value, int | float) and type(value) is not bool


def check_callable(name: str, value: object, what: str) -> None:
    """Raise `InvalidInput` unless `value` can be called."""
    if not callable(value):
        raise InvalidInput(f"{name} is a function of {what}, not {value!r}")


def check_hook(hook: object, *methods: str) -> None:
    """Raise `InvalidInput` unless `hook` has these methods."""
    if not all(callable(getattr(hook, name, None)) for name in methods):
        raise InvalidInput(f"a hook has the methods {' and '.join(methods)}; {hook!r} has not")
