"""The queues of a STICKY member's topics, and the brokers that hold them.

A topic without a route is looked for again soon: brokers create a group's retry topic only when its
first member comes. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from pocketmq.client.group.parts import MemberParts
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue

logger = logging.getLogger("pocketmq.client")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class GroupRoutes:
    """What is known of the routes of all subscribed topics."""

    def __init__(self, parts: MemberParts[Any], changed: Callable[[], None]) -> None:
        self._parts = parts
        self._changed = changed
        self._known: dict[str, frozenset[MessageQueue]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._again = False

    @property
    def queues(self) -> frozenset[MessageQueue]:
        """All queues of subscribed topics."""
        return frozenset[MessageQueue]().union(*self._known.values())

    @property
    def brokers(self) -> frozenset[str]:
        """The brokers of these queues."""
        return frozenset(queue.broker_name for queue in self.queues)

    def take(self, known: KnownRoute) -> None:
        """Take a route over."""
        if known.subscribe_queues != self._known.get(known.topic):
            self._known[known.topic] = known.subscribe_queues
            self._changed()

    async def look(self) -> bool:
        """Ask for the routes of all subscribed topics; return whether each has one."""
        parts, before = self._parts, dict(self._known)
        topics = parts.subscriptions.topics()
        for topic in self._known.keys() - set(topics):
            del self._known[topic]
        for topic in topics:
            try:
                known = await parts.session.routes.get(topic)
            except MQError as error:
                logger.debug('no route: group=%s topic=%s error="%s"', parts.group, topic, error)
            else:
                self._known[topic] = known.subscribe_queues
        if self._known != before:
            self._changed()
        return self._known.keys() >= set(topics)

    def look_soon(self) -> None:
        """Do the same without waiting, and again until each topic has a route."""
        self._again = True
        if self._looking is None or self._looking.done():
            self._looking = self._parts.tasks.spawn(self._look_until_found(), "routes")

    async def _look_until_found(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            self._again = False
            found = await self.look()
            if self._again:
                continue
            if found:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
