"""When to start a broker again that ended by itself. Pure: time is an argument."""

FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0
STEADY = 60.0
"""Seconds a broker has to live for its past to be forgotten."""


def restart_wait(failures: int) -> float:
    """Give the seconds to wait before a start, after so many failures in a row."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(max(0, failures - 1), 30))


def failures_after(failures: int, lived: float) -> int:
    """Count a further failure of a broker that had lived for so many seconds."""
    return 1 if lived >= STEADY else failures + 1
