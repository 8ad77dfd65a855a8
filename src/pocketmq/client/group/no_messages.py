"""Topics that do not exist yet: asked for until they do, and why a consumer receives nothing.

A missing topic, or no subscription at all, is no error: both may change at any time. But both
look like a topic without messages, so each is logged once, when an application has had time to
subscribe. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable

from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError, NotANameServer, RouteNotFound
from pocketmq.model.names import (
    is_dead_letter_topic,
    is_retry_topic,
    is_system_topic,
    unwrap_namespace,
)
from pocketmq.protocol import decode_body
from pocketmq.protocol.requests.nameserver import GET_ALL_TOPIC_LIST_FROM_NAMESERVER
from pocketmq.protocol.requests.topics import TopicNames

logger = logging.getLogger("pocketmq.client")

_FIRST_PAUSE = 0.1
_GROWTH = 1.5
"""With it a consumer that waited some time for a topic waits half as long again at most; it asks
name servers 15 times in half a minute."""
GRACE = 1.0
"""Seconds that a subscription, or the first message of a new topic, may take."""
_AGAIN_AFTER = 10.0
_MOST_NAMED = 3
_ANY = ""
"""Stands for topics as a whole among those that were warned of."""


class MissingRoutes:
    """The topics of one member that have no route.

    The session's poll comes every 30 s, so a consumer that is started before its topic was created
    would begin that late. Here a route is asked for after 0.1 s and then at growing intervals,
    until those are no shorter than the poll's.
    """

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


class NoMessages:
    """Watches over one member; `by_hand` is whether its queues were assigned by hand.

    It looks a second after the start or a subscription: by then an application has subscribed what
    it wants, and topics that are created with their first message mostly exist.
    """

    def __init__(
        self,
        session: Session,
        group: str,
        subscriptions: Subscriptions,
        tasks: Tasks,
        by_hand: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session = session
        self._group = group
        self._subscriptions = subscriptions
        self._tasks = tasks
        self._by_hand = by_hand
        self._task: asyncio.Task[None] | None = None
        self._warned: set[str] = set()

    def look_soon(self) -> None:
        """Look for reasons in a second; called after a start and each subscription."""
        if self._subscriptions.own():
            self._warned.add(_ANY)  # one that unsubscribes everything later does so on purpose
        if self._task is not None:
            self._task.cancel()
        self._task = self._tasks.spawn(self._look(), "reasons for silence")

    async def _look(self) -> None:
        await asyncio.sleep(GRACE)
        if not self._subscriptions.own() and not self._by_hand():
            self._warn(
                _ANY,
                "consumer without subscription: group=%s; it receives nothing until subscribe() "
                "is called",
                self._group,
            )
        while not await self._all_decided():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(_AGAIN_AFTER)

    async def _all_decided(self) -> bool:
        """Warn of topics that do not exist; return whether name servers answered for all."""
        missing, decided = [], True
        for topic in sorted(self._subscriptions.own().keys() - self._warned):
            try:
                await self._session.routes.get(topic)
            except RouteNotFound:
                missing.append(topic)
            except NotANameServer as error:
                self._warn(topic, "no route: group=%s topic=%s: %s", self._group, topic, error)
            except MQError:
                decided = False  # name servers that do not answer are logged where they are asked
        if missing:
            await self._warn_of(missing)
        return decided

    async def _warn_of(self, topics: list[str]) -> None:
        known = await self._existing()
        for topic in topics:
            shown = self._subscriptions.shown(topic)
            self._warn(
                topic,
                "topic does not exist: topic=%s group=%s; consuming it once it is created%s",
                shown, self._group, _similar(shown, known),
            )  # fmt: skip

    async def _existing(self) -> list[str]:
        """Return the names of all topics, as the application calls them; none without an answer."""
        session = self._session
        try:
            answer = await session.routes.name_servers.ask(
                GET_ALL_TOPIC_LIST_FROM_NAMESERVER.code, timeout=session.options.request_timeout
            )
            names = decode_body(answer.body, TopicNames).topic_list
        except MQError:
            return []
        special = (is_system_topic, is_retry_topic, is_dead_letter_topic)
        own = [name for name in names if not any(is_one(name) for is_one in special)]
        return [unwrap_namespace(session.options.namespace, name) for name in own]

    def _warn(self, subject: str, text: str, *facts: object) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            logger.warning(text, *facts)


def _similar(topic: str, known: list[str]) -> str:
    from difflib import get_close_matches  # slow to import, and only mistakes need it

    near = get_close_matches(topic, known, _MOST_NAMED)
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
