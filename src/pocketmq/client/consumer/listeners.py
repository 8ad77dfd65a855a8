"""The application's callbacks about queues that come and go: in order, beside everything else.

A callback may be slow, stuck or raise: the next one waits for it, the consumer does not. Coroutine
functions run on the loop, plain functions in a thread of their own: one that never returns takes
nothing from others, and does not keep the program from ending.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from pocketmq.client.callbacks import call_in_own_thread
from pocketmq.client.consumer.handlers import is_coroutine_function, raised
from pocketmq.client.tasks import Tasks
from pocketmq.model.queue import MessageQueue

logger = logging.getLogger("pocketmq.client")

QueueListener = Callable[[Sequence[MessageQueue]], Any]


class QueueListeners:
    """Calls back about assigned and revoked queues. Belongs to one event loop once started."""

    def __init__(self) -> None:
        self.on_assigned: list[QueueListener] = []
        self.on_revoked: list[QueueListener] = []
        self._due: deque[tuple[QueueListener, tuple[MessageQueue, ...]]] = deque()
        self._calling: asyncio.Task[None] | None = None

    def assigned(self, queues: Sequence[MessageQueue], tasks: Tasks) -> None:
        """Tell about new queues."""
        self._tell(self.on_assigned, queues, tasks)

    def revoked(self, queues: Sequence[MessageQueue], tasks: Tasks) -> None:
        """Tell about lost queues."""
        self._tell(self.on_revoked, queues, tasks)

    async def finish(self, patience: float) -> None:
        """Wait for callbacks that are due, but not longer than `patience`."""
        if self._calling is not None:
            await asyncio.wait({self._calling}, timeout=patience)
        self._due.clear()

    def _tell(
        self, listeners: list[QueueListener], queues: Sequence[MessageQueue], tasks: Tasks
    ) -> None:
        if not queues or not listeners:
            return
        self._due.extend((listener, tuple(queues)) for listener in listeners)
        if self._calling is None or self._calling.done():
            self._calling = tasks.spawn(self._call_all(), "queue listeners")

    async def _call_all(self) -> None:
        this = asyncio.current_task()
        assert this is not None
        while self._due:
            listener, queues = self._due.popleft()
            try:
                if is_coroutine_function(listener):
                    await listener(queues)
                else:
                    outcome = await call_in_own_thread("queue listener", listener, queues)
                    if inspect.isawaitable(outcome):
                        await outcome
            except GeneratorExit:
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and this.cancelling():
                    raise  # meant for this task, not only for what the listener waited for
                raised(error)  # sys.exit() is for the main thread, not for this loop
                logger.exception("a queue listener failed on %s", [str(each) for each in queues])
