"""The application's callbacks about queues: assigned, revoked, or changed in a topic's route.

A callback may be slow, hang or raise: the next one waits for it, the consumer does not. Coroutine
functions run on the loop, plain functions in a daemon thread of their own: one that never returns
blocks no other work, and does not keep the process from exiting. Belongs to one event loop.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from pocketmq.client.callbacks import call_in_own_thread, interrupt_main
from pocketmq.client.group.held_queue import log_name
from pocketmq.client.routes import RouteBook
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.names import unwrap_namespace, wrap_namespace

logger = logging.getLogger("pocketmq.client")

QueueListener = Callable[[Sequence[MessageQueue]], Any]
Queues = tuple[MessageQueue, ...]
QueuesListener = Callable[[str, Queues], Awaitable[None] | None]
"""Takes the topic and all its queues; a plain function or a coroutine function."""

FIRST_LOOK = 10.0
"""Seconds after the start until listeners are served first, as in Java."""


class QueueListeners:
    """Calls back about assigned and revoked queues, one call at a time."""

    def __init__(self) -> None:
        self.on_assigned: list[QueueListener] = []
        self.on_revoked: list[QueueListener] = []
        self._due: deque[tuple[QueueListener, tuple[MessageQueue, ...]]] = deque()
        self._calling: asyncio.Task[None] | None = None

    def assigned(self, queues: Sequence[MessageQueue], tasks: Tasks) -> None:
        """Report new queues."""
        self._report(self.on_assigned, queues, tasks)

    def revoked(self, queues: Sequence[MessageQueue], tasks: Tasks) -> None:
        """Report lost queues."""
        self._report(self.on_revoked, queues, tasks)

    async def revoked_and_done(self, queues: Sequence[MessageQueue], tasks: Tasks) -> None:
        """Report lost queues, and wait until the listeners have returned."""
        self.revoked(queues, tasks)
        if self._calling is not None:
            await asyncio.wait({self._calling})

    async def finish(self, patience: float) -> None:
        """Wait for pending callbacks, but not longer than `patience`."""
        if self._calling is not None:
            await asyncio.wait({self._calling}, timeout=patience)
        self._due.clear()

    def _report(
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
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    interrupt_main()  # sys.exit() is for the main thread, not for this loop
                logger.exception(
                    "queue listener failed: listener=%r queues=%s",
                    listener, [log_name(each) for each in queues],
                )  # fmt: skip


class QueueWatch:
    """Listeners for changes of a topic's queues (Java: TopicMessageQueueChangeListener).

    For consumers that assign queues by hand and have to follow changes themselves.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._listeners: dict[str, QueuesListener] = {}
        self._seen: dict[str, Queues] = {}

    def listen(self, topic: str, listener: QueuesListener) -> None:
        """Call a listener from now on; it replaces another one of the topic."""
        self._listeners[topic] = listener
        self._seen.pop(topic, None)

    async def queues(self, routes: RouteBook, topic: str, timeout: float) -> Queues:  # noqa: ASYNC109 - the question outlives it
        """Return the queues of a topic, sorted; raises what `RouteBook.refresh` does."""
        known = await routes.refresh(wrap_namespace(self._namespace, topic), timeout)
        return tuple(
            MessageQueue(unwrap_namespace(self._namespace, q.topic), q.broker_name, q.queue_id)
            for q in sort_queues(set(known.subscribe_queues))
        )

    async def look(self, routes: RouteBook, timeout: float) -> None:  # noqa: ASYNC109 - for each topic
        """Compare each topic with what was seen last; the first time, no listener is called."""
        for topic, listener in list(self._listeners.items()):
            try:
                queues = await self.queues(routes, topic, timeout)
            except MQError as error:
                logger.debug('route refresh failed: topic=%s error="%s"', topic, error)
                continue
            before = self._seen.get(topic)
            self._seen[topic] = queues
            if before is not None and before != queues:
                await _call(listener, topic, queues)


async def _call(listener: QueuesListener, topic: str, queues: Queues) -> None:
    try:
        outcome = listener(topic, queues)
        if inspect.isawaitable(outcome):
            await outcome
    except Exception:
        logger.exception("listener for changed queues failed: topic=%s", topic)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Return whether calling it makes a coroutine, also for bound, partial and callable objects."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - not whether, but how it is called
    )
