"""What all blocking clients have in common: an asyncio client, and the process's loop to run it.

Their docstrings repeat those of the asyncio clients in full, because editors read the source;
a test keeps them the same.
"""

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.process_loop import closed, loop_thread, opened

P = ParamSpec("P")
T = TypeVar("T")


class _Options(Protocol):
    @property
    def group(self) -> str: ...


class AsyncClient(Protocol):
    """What all asyncio clients have in common."""

    @property
    def options(self) -> _Options:
        """The client's options."""

    async def start(self) -> object:
        """Start the client."""

    async def close(self) -> None:
        """Finish pending work, then close."""


C = TypeVar("C", bound=AsyncClient)


class Facade(Generic[C]):
    """Runs one asyncio client from threads. Any thread may call; none needs an event loop.

    In a fork of the process all methods of a client that was started before raise `ClientForked`.
    Called from a coroutine on the clients' own loop they raise `WouldBlockLoop`.
    """

    def __init__(self, client: C) -> None:
        self._client = client
        self._thread: LoopThread | None = None

    def start(self) -> Self:
        """Make ready; `with` does it, too.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has such a member in this group already, `ServerError` if a broker refuses a filter,
        `ClientClosed` or `InvalidInput` once it has been closed. Nothing is left running then.
        """
        thread = self._thread or loop_thread()
        thread.call(self._client.start())
        self._thread = thread
        opened(self, self._close_at_exit)
        return self

    def close(self) -> None:
        """Finish what was promised, and leave; the end of `with` does it, too.

        Closing twice is harmless. Raises `ClientForked`.
        """
        if self._thread is not None:
            self._thread.call(self._client.close())
            closed(self)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._client)

    def _close_at_exit(self) -> Coroutine[Any, Any, None]:
        """Return the coroutine that closes it at the exit of the interpreter."""
        return self._client.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the client and return its result."""
        return (self._thread or loop_thread()).call(work)

    def _do(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the client that does not wait: on the loop, once it runs there."""
        thread = self._thread
        if thread is None or thread.is_current():
            return method(*args, **kwargs)

        async def do() -> T:
            return method(*args, **kwargs)

        return thread.call(do())
