"""Routes of subscribed topics that do not exist yet: asked for until they do.

The session's poll comes every 30 s, so a consumer that is started before its topic was created
would begin that late. Here a route is asked for after 0.1 s and then at growing intervals, until
those are no shorter than the poll's. Belongs to one event loop.
"""

import asyncio
from collections.abc import Collection, Iterable

from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError

_FIRST_PAUSE = 0.1
_GROWTH = 1.5
"""With it a consumer that waited some time for a topic waits half as long again at most; it asks
name servers 15 times in half a minute."""


class MissingRoutes:
    """The topics of one member that have no route."""

    def __init__(self, session: Session, tasks: Tasks) -> None:
        self._session = session
        self._tasks = tasks
        self._watched: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, topic: object) -> bool:
        """Whether a topic is asked for, or was until now."""
        return topic in self._watched

    def watch(self, topics: Collection[str]) -> None:
        """Ask for the routes of those that have none; the session's listeners hear of them."""
        cached = self._session.routes.cached
        missing = {topic for topic in topics if cached(topic) is None}
        self._drop(self._watched.keys() - missing)
        for topic in missing - self._watched.keys():
            self._watched[topic] = self._tasks.spawn(self._ask(topic), f"await route of {topic}")

    def _drop(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._watched.pop(topic).cancel()

    async def _ask(self, topic: str) -> None:
        routes, longest = self._session.routes, self._session.options.route_interval
        pause = _FIRST_PAUSE
        while pause < longest and routes.cached(topic) is None:
            await asyncio.sleep(pause)
            pause *= _GROWTH
            try:
                await routes.refresh(topic)
            except MQError:
                continue  # not created yet, or no name server answers: both may change
