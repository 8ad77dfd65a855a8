"""What all blocking clients are: an asyncio client, and the process's loop to run it on."""

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


class Client(Protocol):
    """An asyncio client, as far as they are all alike."""

    @property
    def options(self) -> _Options:
        """How it works."""

    async def start(self) -> object:
        """Make ready."""

    async def close(self) -> None:
        """Finish what was promised, and leave."""


C = TypeVar("C", bound=Client)


class Facade(Generic[C]):
    """Runs one asyncio client from threads. Any thread may call; none needs an event loop.

    In a fork of the process all methods of a client that was started before raise `ClientForked`.
    Called from a coroutine on the clients' own loop they raise `WouldBlockLoop`.
    """

    def __init__(self, client: C) -> None:
        self._client = client
        self._thread: LoopThread | None = None

    def start(self) -> Self:
        """Make ready; `with` does it, too. Errors are those of the asyncio client."""
        thread = self._thread or loop_thread()
        thread.call(self._client.start())
        self._thread = thread
        opened(self)
        return self

    def close(self) -> None:
        """Finish what was promised, and leave; the end of `with` does it, too.

        Closing twice is harmless.
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
        return f"<{type(self).__name__} of group {self._client.options.group!r}>"

    def last_words(self) -> Coroutine[Any, Any, None]:
        """Give the work of closing, for the end of the process."""
        return self._client.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the client and give what it gives."""
        return (self._thread or loop_thread()).call(work)

    def _do(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the client that does not wait: on the loop, once it runs there."""
        thread = self._thread
        if thread is None or thread.is_current():
            return method(*args, **kwargs)

        async def do() -> T:
            return method(*args, **kwargs)

        return thread.call(do())
