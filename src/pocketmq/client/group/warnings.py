"""Mistakes in how a group is used, found in a broker's description of the group.

RocketMQ expects of a group's members one client id each, the same subscriptions and the same
model; a broker keeps what the last heartbeat said. Members that break a rule lose messages without
an error anywhere, so each mistake is logged once, in one warning that says what to do.

A broker keeps one subscription of each topic, so the member whose subscription that is finds
nothing wrong in its description. That is why a few members are also asked themselves.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from enum import Enum

import msgspec

from pocketmq.client.group.calls import member_subscriptions
from pocketmq.client.group.connections import GroupConnections
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model import MessageModel, Subscription
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.requests.groups import ClientConnection, ConsumerConnections

logger = logging.getLogger("pocketmq.client")

_MOST = 64
_MOST_ASKED = 8
"""Members that are asked themselves, at most: in a large group a mistake is seldom one member's."""
_CONFIRM_AFTER = 1.0
"""Seconds after which a member is asked again: it may be about to subscribe."""


class Mistake(Enum):
    """What can be wrong about a group."""

    DUPLICATE_CLIENT_ID = "two members have one client id"
    DIFFERENT_SUBSCRIPTIONS = "members have different subscriptions"
    BOTH_MODELS = "the group is used with both models"


class MembershipWarning(msgspec.Struct, frozen=True):
    """A mistake, what it is about, and what to do."""

    mistake: Mistake
    subject: str
    """The client id, the topic, or the group."""
    text: str
    seen: float
    """When it was first seen, in seconds since 1970."""

    def __str__(self) -> str:
        return self.text


class MembershipWatch:
    """The mistakes found in descriptions of one group."""

    def __init__(self, group: str, model: MessageModel) -> None:
        self.group = group
        self._model = model
        self._found: dict[tuple[Mistake, str], MembershipWarning] = {}
        self._said: dict[str, set[tuple[str, str]]] = {}
        self._doubled: set[str] = set()  # client ids that the last look found twice

    @property
    def warnings(self) -> tuple[MembershipWarning, ...]:
        """The mistakes found so far."""
        return tuple(self._found.values())

    def announced(self, own: Mapping[str, Subscription]) -> None:
        """Record the subscriptions that this member has just sent to brokers."""
        for topic, each in own.items():
            self._said.setdefault(topic, set()).add((each.expression_type, each.sub_string))

    def look(self, seen: ConsumerConnections, own: Mapping[str, Subscription], now: float) -> None:
        """Compare a broker's view of the group with this member's own."""
        self._look_for_duplicates(seen.connection_set, now)
        if seen.message_model is not None and seen.message_model is not self._model:
            self._warn(
                Mistake.BOTH_MODELS,
                self.group,
                f"group {self.group}: another member uses the model {seen.message_model.value}, "
                f"this one {self._model.value}; brokers use that of the last heartbeat, so queues "
                "are assigned wrongly. Use one model in all members, or another group",
                now,
            )
        if self._said:
            self._look_at_topics(seen.subscription_table, own, now)

    def compare(
        self, theirs: Mapping[str, Subscription], own: Mapping[str, Subscription], now: float
    ) -> None:
        """Compare the subscriptions of another member with this member's own."""
        if self._said:
            self._look_at_topics(theirs, own, now)

    def _look_for_duplicates(self, connections: list[ClientConnection], now: float) -> None:
        counted = Counter(each.client_id for each in connections if each.client_id)
        doubled = {client_id for client_id, count in counted.items() if count > 1}
        # A member that has just reconnected may be listed twice for a short time.
        again, self._doubled = sorted(doubled & self._doubled), doubled
        for client_id in again:
            places = sorted(
                each.client_addr or "?" for each in connections if each.client_id == client_id
            )
            self._warn(
                Mistake.DUPLICATE_CLIENT_ID,
                client_id,
                f"group {self.group}: {len(places)} members have the client id {client_id} "
                f"(connected from {', '.join(places)}); each takes the same queues, and the "
                "queues of the others have no owner. Set a separate instance_name for each process",
                now,
            )

    def _look_at_topics(
        self, table: Mapping[str, Subscription], own: Mapping[str, Subscription], now: float
    ) -> None:
        for topic, each in table.items():
            if is_retry_topic(topic):
                continue
            said = self._said.get(topic)
            if said is None:
                self._differs(
                    topic, f"another member subscribes to {topic}, this one does not", now
                )
            elif (each.expression_type, each.sub_string) not in said:
                wanted = own[topic].sub_string if topic in own else "nothing"
                self._differs(
                    topic,
                    f"another member subscribes to {topic} with {each.sub_string!r}, "
                    f"this one with {wanted!r}",
                    now,
                )
        for topic in own:
            if topic in self._said and topic not in table:
                self._differs(
                    topic, f"this member subscribes to {topic}, another member does not", now
                )

    def _differs(self, topic: str, what: str, now: float) -> None:
        self._warn(
            Mistake.DIFFERENT_SUBSCRIPTIONS,
            topic,
            f"group {self.group}: {what}; brokers filter by the last subscription they received, "
            "so messages are lost. Use the same subscriptions in all members, or another group",
            now,
        )

    def _warn(self, mistake: Mistake, subject: str, text: str, now: float) -> None:
        if (mistake, subject) in self._found or len(self._found) >= _MOST:
            return
        self._found[mistake, subject] = MembershipWarning(mistake, subject, text, now)
        logger.warning("%s", text)


class GroupChecks:
    """Checks a group with its brokers, at most once at a time. Belongs to one event loop."""

    def __init__(
        self,
        watch: MembershipWatch,
        session: Session,
        subscriptions: Subscriptions,
        tasks: Tasks,
        connections: GroupConnections,
    ) -> None:
        self._watch = watch
        self._session = session
        self._subscriptions = subscriptions
        self._tasks = tasks
        self._connections = connections
        self._checking = False
        self._asked = {session.client_id}

    def announced(self) -> None:
        """Take note of a change of this member's own subscriptions: others may differ now."""
        self._asked = {self._session.client_id}

    def check_soon(self) -> None:
        """Check in the background, unless a check is in flight."""
        if not self._checking:
            self._checking = True
            self._tasks.spawn(self._check(), "check the group")

    async def _check(self) -> None:
        try:
            own = self._subscriptions.own()
            topic = next((t for t in own if self._session.routes.cached(t) is not None), None)
            if topic is None:
                return
            seen = await self._connections.read(topic)
            if seen is not None:
                self._watch.look(seen, self._subscriptions.own(), self._session.clock.now())
                self._ask_one(topic, seen)
        finally:
            self._checking = False

    def _ask_one(self, topic: str, seen: ConsumerConnections) -> None:
        """Ask a member, chosen by chance, that was not asked before."""
        ids = sorted({each.client_id for each in seen.connection_set if each.client_id})
        if (others := [each for each in ids if each not in self._asked]) and (
            len(self._asked) <= _MOST_ASKED
        ):
            chosen = self._session.random.choice(others)
            self._asked.add(chosen)
            self._tasks.spawn(self._compare(topic, chosen), f"subscriptions of {chosen}")

    async def _compare(self, topic: str, client_id: str) -> None:
        theirs = await self._subscribed_by(topic, client_id)
        if theirs and not _same(theirs, self._subscriptions.own()):
            await asyncio.sleep(_CONFIRM_AFTER)
            if theirs := await self._subscribed_by(topic, client_id):
                now = self._session.clock.now()
                self._watch.compare(theirs, self._subscriptions.own(), now)

    async def _subscribed_by(self, topic: str, client_id: str) -> dict[str, Subscription]:
        found = await member_subscriptions(self._session, topic, self._watch.group, client_id)
        return {each.topic: each for each in found or () if not is_retry_topic(each.topic)}


def _same(one: Mapping[str, Subscription], other: Mapping[str, Subscription]) -> bool:
    def compared(table: Mapping[str, Subscription]) -> dict[str, tuple[str, str]]:
        return {topic: (each.expression_type, each.sub_string) for topic, each in table.items()}

    return compared(one) == compared(other)
