"""Where the queues of a topic are in the whole cluster, as the name servers say.

Only brokers that assign queues to their clients ask. A cached answer is served while it is
refreshed; the first request for a topic waits for it. Belongs to the broker's loop;
`naming.name_servers` asks.
"""

from collections.abc import Callable
from typing import TypeAlias

from pocketmq.errors import BodyMalformed
from pocketmq.model.queue import MessageQueue
from pocketmq.model.route import TopicRoute

FRESH_FOR = 30.0
"""Seconds after which a route is asked for again."""
MAX_ROUTES = 10_000
"""Topics remembered; beyond that each question goes to the name servers."""

Queues: TypeAlias = frozenset[MessageQueue]
Found: TypeAlias = Callable[[TopicRoute | None], None]
Fetch: TypeAlias = Callable[[str, Found], None]
"""Asks for a topic's route and calls back, now or later; None if there is none."""
Waiter: TypeAlias = Callable[[Queues | None], None]


def _nobody(_: str, found: Found) -> None:
    """Answer for a broker without name servers."""
    found(None)


class RouteCache:
    """Readable queues by topic, as name servers returned them."""

    def __init__(self, fetch: Fetch = _nobody) -> None:
        self.fetch = fetch
        self._known: dict[str, tuple[Queues, float]] = {}
        self._waiting: dict[str, list[Waiter]] = {}

    def find(self, topic: str, now: float, waiter: Waiter) -> None:
        """Call `waiter` with a topic's queues: at once if they are cached, else when they are.

        It gets None for a topic without a route, or if no name server answers.
        """
        known = self._known.get(topic)
        if known is not None:
            queues, since = known
            if now - since > FRESH_FOR:
                self._ask(topic, now)
            waiter(queues)
            return
        waiting = self._waiting.get(topic)
        if waiting is not None:
            waiting.append(waiter)
        else:
            self._ask(topic, now, waiter)

    def _ask(self, topic: str, now: float, *waiters: Waiter) -> None:
        if topic in self._waiting:
            return
        self._waiting[topic] = list(waiters)

        def found(route: TopicRoute | None) -> None:
            queues = self._take(topic, route, now)
            for waiter in self._waiting.pop(topic, ()):
                waiter(queues)

        self.fetch(topic, found)

    def _take(self, topic: str, route: TopicRoute | None, now: float) -> Queues | None:
        self._known.pop(topic, None)
        if route is None:
            return None
        try:
            queues = frozenset(route.subscribe_queues(topic))
        except BodyMalformed:
            return None
        if len(self._known) < MAX_ROUTES:
            self._known[topic] = queues, now
        return queues
