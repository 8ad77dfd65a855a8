"""The one way to change a cluster from a page: checked, then done, then logged."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Audit(Protocol):
    """Does some work on behalf of a visitor."""

    async def __call__(
        self,
        who: str,
        what: str,
        work: Callable[[], Awaitable[T]],
        result: Callable[[T], str] | None = None,
        /,
    ) -> T:
        """Return the result of `work`; the log says who did what, and `result` of it.

        Raises `InvalidInput` if actions are off, before anything is done.
        """
        ...
