"""Telling the application when a topic gets other queues (Java: TopicMessageQueueChangeListener).

For consumers that assign queues by hand and have to follow changes themselves. Belongs to one loop.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable

from pocketmq.client.routes import RouteBook
from pocketmq.errors import MQError
from pocketmq.model.names import unwrap_namespace, wrap_namespace
from pocketmq.model.queue import MessageQueue, sort_queues

logger = logging.getLogger("pocketmq.client")

Queues = tuple[MessageQueue, ...]
QueuesListener = Callable[[str, Queues], Awaitable[None] | None]
"""Told the topic and all its queues now; a plain function or a coroutine function."""

FIRST_LOOK = 10.0
"""How long after the start listeners are served first, as in Java."""


class QueueWatch:
    """Listeners by topic, and the queues each was last told about."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._listeners: dict[str, QueuesListener] = {}
        self._seen: dict[str, Queues] = {}

    def listen(self, topic: str, listener: QueuesListener) -> None:
        """Tell a listener from now on; it takes the place of another one of the topic."""
        self._listeners[topic] = listener
        self._seen.pop(topic, None)

    async def queues(self, routes: RouteBook, topic: str, timeout: float) -> Queues:  # noqa: ASYNC109 - the question outlives it
        """Ask for the queues of a topic, sorted; raises what `RouteBook.refresh` does."""
        known = await routes.refresh(wrap_namespace(self._namespace, topic), timeout)
        return tuple(
            MessageQueue(unwrap_namespace(self._namespace, q.topic), q.broker_name, q.queue_id)
            for q in sort_queues(set(known.subscribe_queues))
        )

    async def look(self, routes: RouteBook, timeout: float) -> None:  # noqa: ASYNC109 - for each topic
        """Compare each topic with what was seen last; what is seen first is told to nobody."""
        for topic, listener in list(self._listeners.items()):
            try:
                queues = await self.queues(routes, topic, timeout)
            except MQError as error:
                logger.debug("the queues of %s are not known: %s", topic, error)
                continue
            before = self._seen.get(topic)
            self._seen[topic] = queues
            if before is not None and before != queues:
                await _tell(listener, topic, queues)


async def _tell(listener: QueuesListener, topic: str, queues: Queues) -> None:
    try:
        outcome = listener(topic, queues)
        if inspect.isawaitable(outcome):
            await outcome
    except Exception:
        logger.exception("a listener failed on the changed queues of %s", topic)
