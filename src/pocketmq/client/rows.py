"""Requests in a row: each is sent while the answer to the one before it is read.

A task that awaits answer after answer is switched to each time, an iteration of the event loop
after the read, and asks through all layers again. Here a function is called with the answer inside
of the read, and may send the next request at once. What it leaves alone, and every error, goes to
the task. Belongs to one event loop.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Generic, Protocol, TypeVar

from pocketmq.errors import MQError, RequestTimedOut, TransportError
from pocketmq.net import Connection, Dialer
from pocketmq.protocol import Command

N = TypeVar("N")
N_contra = TypeVar("N_contra", contravariant=True)


class NumberedTemplate(Protocol[N_contra]):
    """A request of which all but some numbers is encoded."""

    def fields(self, numbers: N_contra, /) -> Mapping[str, str]:
        """Return the fields of a request with these numbers."""

    def frame(self, code: int, numbers: N_contra, opaque: int, /) -> bytes:
        """Return the whole request."""


class RequestRow(Generic[N]):
    """Requests of one template on one connection, at most one of them in flight."""

    __slots__ = (
        "_asked", "_check", "_code", "_connection", "_context", "_dialer", "_loop", "_numbers",
        "_opaque", "_outcome", "_take", "_template", "_timeout",
    )  # fmt: skip

    def __init__(
        self,
        dialer: Dialer,
        connection: Connection,
        check: Callable[[], None],
        code: int,
        template: NumberedTemplate[N],
        *,
        timeout: float,
    ) -> None:
        """Take an open connection; `check` raises if the client is closed or was forked."""
        self._dialer = dialer
        self._connection = connection
        self._check = check
        self._code = code
        self._template = template
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[Command | None] | None = None
        self._take: Callable[[Command], bool] = _leave
        # That of a read is the context of whoever opened the connection.
        self._context = copy_context()
        self._opaque = 0
        self._asked = 0.0

    async def ask(self, numbers: N, take: Callable[[Command], bool]) -> Command | None:
        """Send the first request; return the answer that `take` leaves, or None after `end`.

        `take` is called inside of reads, with one answer after another, in the context in which the
        row was made. It either leaves an answer to the caller, and returns False; or it returns
        True, and calls `send`, `soon` or `end`. What it raises is raised here. Raises what
        `ServerCalls.ask` does, but for answers.
        """
        self._check()
        self._take = take
        outcome: asyncio.Future[Command | None] = self._loop.create_future()
        self._outcome = outcome
        try:
            self.send(numbers, self._connection.clock())
            return await outcome
        except BaseException as error:
            self._connection.forget(self._opaque)
            if not isinstance(error, RequestTimedOut):
                raise
            raise self._dialer.late(self._connection, self._asked, error, self._timeout) from None
        finally:
            self._outcome, self._take = None, _leave  # which refers to what refers to this
            del outcome  # it holds the error, which holds this frame: free all three at once

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        try:
            self._check()
        except MQError:
            return False  # the caller of `ask` will see it when it asks anew
        return not self._connection.closed

    def send(self, numbers: N, now: float) -> None:
        """Send the next request, at this time of the loop's clock; only if the row is usable."""
        self._numbers = numbers
        self._asked = now
        self._connection.requests.ask_into(self, self._code, self._timeout)

    def soon(self, step: Callable[[], None]) -> None:
        """Call a function after what the event loop has to do already, unless all is over then.

        It calls `send` or `end`; what it raises is raised by `ask`.
        """
        self._loop.call_soon(self._do, step)

    def end(self) -> None:
        """Let the caller of `ask` continue."""
        outcome = self._outcome
        if outcome is not None and not outcome.done():
            outcome.set_result(None)

    def _do(self, step: Callable[[], None]) -> None:
        if not self.done():
            try:
                step()
            except Exception as error:  # noqa: BLE001 - raised by `ask`
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        outcome = self._outcome
        if outcome is not None and not outcome.done():
            outcome.set_exception(error)

    # As where answers go

    def done(self) -> bool:
        """Return whether nothing is awaited any more."""
        return self._outcome is None or self._outcome.done()

    def frame(self, opaque: int) -> bytes:
        """Return the request with its number."""
        self._opaque = opaque
        return self._template.frame(self._code, self._numbers, opaque)

    def set_result(self, answer: Command) -> None:
        """Take an answer, or pass it on."""
        try:
            taken = self._context.run(self._take, answer)
        except Exception as error:  # noqa: BLE001 - raised by `ask`
            self._fail(error)
            return
        outcome = self._outcome
        if not taken and outcome is not None and not outcome.done():
            outcome.set_result(answer)

    def set_exception(self, exception: TransportError) -> None:
        """Pass on why no answer comes."""
        self._fail(exception)


def _leave(_: Command) -> bool:
    return False
