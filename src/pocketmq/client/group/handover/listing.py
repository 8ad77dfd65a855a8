"""What a STICKY member looks up: who is in its group, and which queues its topics have.

Members are the union of what all masters of the topics list. A list that lacks one is reported
after all that is on the buses: what that one said before it left may come later than its absence
shows. A topic without a route is looked for again soon: brokers create a group's retry topic only
when its first member comes. Belongs to one event loop.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from pocketmq.balance.handover.events import MembersListed
from pocketmq.client.group.handover.bus import Bus
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError, ServerError
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.membership import ConsumerIds, GetConsumerListRequest

logger = logging.getLogger("pocketmq.client")

LIST_TIMEOUT = 3.0
UNLISTED = 15.0
"""Seconds in which a broker did not answer, or did not list this member although that sends it
heartbeats. After that its list counts as it is, or as empty: members that are listed there alone
can be taken for gone then."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
"""Seconds between tries to get the routes of all topics."""


class MemberListing:
    """Asks for the members of a group, one question at a time."""

    def __init__(
        self,
        session: Session,
        group: str,
        tasks: Tasks,
        brokers: Callable[[], Collection[str]],
        report: Callable[[MembersListed], None],
        *,
        bus: Bus,
    ) -> None:
        self._session = session
        self._group = group
        self._tasks = tasks
        self._brokers = brokers
        self._bus = bus
        self._report = report
        self._shown = frozenset[str]()  # who was listed last
        self._asking = False
        self._again = False
        self._missing: dict[str, float] = {}  # brokers, and since when they do not list it
        self._now = asyncio.get_running_loop().time

    def ask_soon(self) -> None:
        """Ask, or ask again after the question in flight: its answer may be from before."""
        if self._asking:
            self._again = True
            return
        self._asking = True
        self._tasks.spawn(self._ask_all(), "list members")

    async def _ask_all(self) -> None:
        try:
            while True:
                self._again = False
                brokers, asked_at = sorted(self._brokers()), self._now()
                answers = await asyncio.gather(*(self._ask(broker) for broker in brokers))
                by_broker = dict(zip(brokers, answers, strict=True))
                found = self._union(by_broker, asked_at)
                await self._hear_last_words(found, by_broker)
                self._report(found)
                if not self._again:
                    return
        finally:
            self._asking = False

    async def _hear_last_words(
        self, found: MembersListed, answers: dict[str, tuple[str, ...] | None]
    ) -> None:
        """Hear first what is on the buses if a member is not listed any more."""
        if found.complete:
            missing, self._shown = self._shown.difference(found.members), frozenset(found.members)
            if missing:
                await self._bus.catch_up([broker for broker, one in answers.items() if one])
        else:
            self._shown |= frozenset(found.members)

    def _union(self, answers: dict[str, tuple[str, ...] | None], asked_at: float) -> MembersListed:
        most: Counter[str] = Counter()
        shown_by: set[str] = set()
        for broker, listed in answers.items():
            most |= Counter(listed or ())
            if self._session.client_id in (listed or ()):
                shown_by.add(broker)
        complete = bool(answers) and None not in answers.values()
        members = tuple(sorted(most.elements()))
        return MembersListed(members, complete, frozenset(shown_by), asked_at)

    async def _ask(self, broker: str) -> tuple[str, ...] | None:
        """Return a broker's list; None if it must not be taken for the truth."""
        session = self._session
        try:
            answer = await session.brokers.call(
                broker,
                RequestCode.GET_CONSUMER_LIST_BY_GROUP,
                GetConsumerListRequest(consumer_group=self._group),
                timeout=LIST_TIMEOUT,
                master_only=True,
            )
            listed = tuple(decode_body(answer.body, ConsumerIds).consumer_id_list)
        except ServerError as error:
            logger.debug("no member list: group=%s broker=%s error=%s", self._group, broker, error)
            listed = ()
        except MQError as error:
            logger.debug("no member list: group=%s broker=%s error=%s", self._group, broker, error)
            return () if self._missing_long(broker) else None
        if session.client_id in listed:
            self._missing.pop(broker, None)
            return listed
        # It has just started, or dropped this member: others are missing there just the same. But
        # one that never lists the group must not keep those alive that are gone.
        session.heartbeats.beat_soon()
        return listed if self._missing_long(broker) else None

    def _missing_long(self, broker: str) -> bool:
        since = self._missing.setdefault(broker, self._now())
        return self._now() - since > UNLISTED


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
