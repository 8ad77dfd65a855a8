"""One call on the native core, as its function sees it: what came, and where responses go."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from pocketmq.proxy.methods import Method
from pocketmq.proxy.translation.caller import Caller

if TYPE_CHECKING:
    from pocketmq.proxy.native_calls import NativeCalls

Fields: TypeAlias = tuple[str | None, ...]


class NativeCall:
    """One call; see `methods`."""

    __slots__ = (
        "_arrived", "_calls", "_deadline", "_ended", "_fields", "_waiting", "_writable", "method",
        "release", "request", "stream", "task",
    )  # fmt: skip

    def __init__(
        self, calls: "NativeCalls", stream: int, method: Method, fields: Fields, deadline: float
    ) -> None:
        self._calls = calls
        self.stream = stream
        self.method = method
        self._fields = fields
        self._deadline = deadline
        self.request: bytes | None = None
        self.task: asyncio.Task[None] | None = None
        self.release: Callable[[], None] | None = None
        """What is called if the client ends a call that was begun."""
        # Of exchanges alone:
        self._arrived: deque[bytes] = deque()
        self._ended = False
        self._waiting: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None

    def caller(self) -> Caller:
        """Return the client; raises `CallRefused` if it does not name itself."""
        return self._calls.caller(self._fields)

    def time_left(self) -> float | None:
        """Return the seconds until the client's deadline; None if it has none."""
        if not self._deadline:
            return None
        return max(0.0, self._deadline - self._calls.loop.time())

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the client's messages until it ends them."""
        while True:
            while self._arrived:
                yield self._arrived.popleft()
                self._calls.core.want(self.stream)
                self._calls.changed()
            if self._ended:
                return
            self._waiting = self._calls.loop.create_future()
            await self._waiting

    async def write(self, message: bytes) -> None:
        """Send a message, and wait while the client reads too slowly."""
        calls = self._calls
        left = calls.core.write(self.stream, message)
        calls.changed()
        if not left:
            self._writable = calls.loop.create_future()
            await self._writable

    def is_over(self) -> bool:
        """Return whether the client has ended it."""
        return not self._calls.has(self.stream)

    def reply(self, response: bytes) -> None:
        """Send the response of a call that was begun."""
        self._calls.finish(self, response)

    def continue_with(self, begin: Callable[[], Awaitable[bytes]]) -> None:
        """Make the response of a call that was begun in a task."""
        self._calls.continue_with(self, begin)

    def reply_all(self, responses: bytes) -> bool:
        """Send all responses; False if the client does not take them now."""
        return self._calls.finish_all(self, responses)

    def continue_stream(self, responses: AsyncGenerator[bytes, None]) -> None:
        """Send responses that take their time."""
        self._calls.continue_stream(self, responses)

    def arrive(self, message: bytes | None, *, ended: bool) -> None:
        """Hand a message of an exchange over, or its end."""
        if message is not None:
            self._arrived.append(message)
        self._ended = self._ended or ended
        done(self._waiting)

    def resume(self) -> None:
        """Let the sender continue."""
        done(self._writable)


def done(future: asyncio.Future[None] | None) -> None:
    """Let what waits for a future continue."""
    if future is not None and not future.done():
        future.set_result(None)
