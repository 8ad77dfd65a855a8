"""Why a part did not start, in words for the one who started it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pocketmq.errors import CannotStart, InvalidInput, ListenFailed, StoreError


@contextmanager
def told_as_cannot_start(part: str) -> Iterator[None]:
    """Turn what a wrong address, directory or setting causes into `CannotStart`."""
    try:
        yield
    except ListenFailed as problem:
        reason = f"it cannot listen on {problem.address}: {problem.reason}"
        raise CannotStart(part, reason) from problem
    except (InvalidInput, StoreError) as problem:
        raise CannotStart(part, str(problem)) from problem
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        raise CannotStart(part, f"{where}{problem.strerror or problem}") from problem
