"""Consumers online: the members of every group, its subscriptions, and notifications of changes.

A subscription is read once, at the heartbeat, and then applied by every pull.
The broker's side of client-side balancing: members get the list of members from here.
Pure rules over a table in memory with `now` as an argument; what must be sent comes back as a
`Change`. Belongs to the broker's loop.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.broker.core.peer import ClientPeer
from pocketmq.errors import FilterSyntaxError
from pocketmq.model import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, Subscription
from pocketmq.model.groups import SQL92
from pocketmq.protocol.filter import SqlFilter, TagFilter, compile_sql, is_tag_kind, tag_filter
from pocketmq.protocol.peers import Language


class TopicSubscription(msgspec.Struct, frozen=True):
    """A group's subscription to a topic with the filters it stands for."""

    subscription: Subscription
    tags: TagFilter
    sql: SqlFilter | None = None
    """The compiled expression; None for tags, and for an expression that does not parse."""

    @property
    def by_tag(self) -> bool:
        """Whether tags decide; otherwise `sql` does, and without it nothing can be pulled."""
        return is_tag_kind(self.subscription.expression_type)


def subscribed(
    subscription: Subscription, known: TopicSubscription | None = None
) -> TopicSubscription:
    """Prepare a subscription, reusing the filter of an older version with the same expression.

    An expression that does not parse is kept without a filter, as in Java: pulls are then refused.
    """
    sql = None
    if not is_tag_kind(subscription.expression_type):
        if known is not None and _same_expression(known.subscription, subscription):
            sql = known.sql
        else:
            sql = _compiled(subscription)
    return TopicSubscription(subscription, tag_filter(subscription), sql)


def expression_fault(subscription: Subscription) -> str | None:
    """Return why a broker cannot filter by this subscription; None if it can."""
    if is_tag_kind(subscription.expression_type):
        return None
    if subscription.expression_type != SQL92:
        return f"there is no filter of type {subscription.expression_type}"
    try:
        compile_sql(subscription.sub_string)
    except FilterSyntaxError as error:
        return f"{error.reason} at column {error.column}"
    return None


def _same_expression(one: Subscription, other: Subscription) -> bool:
    return (one.expression_type, one.sub_string) == (other.expression_type, other.sub_string)


def _compiled(subscription: Subscription) -> SqlFilter | None:
    if subscription.expression_type != SQL92:
        return None
    try:
        return compile_sql(subscription.sub_string)
    except FilterSyntaxError:
        return None


class ClientInfo(msgspec.Struct, frozen=True):
    """The sender of a heartbeat: client id, language and version."""

    client_id: str
    language: Language | None
    version: int


class OnlineConsumer:
    """One connection of a group's member."""

    __slots__ = ("client", "last_seen")

    def __init__(self, client: ClientInfo, now: float) -> None:
        self.client = client
        self.last_seen = now


class ConsumerGroup:
    """A group with at least one member.

    Its subscriptions and the way it consumes are those of the latest heartbeat of any member:
    members that disagree overwrite each other, as in Java.
    """

    __slots__ = (
        "consume_from_where", "consume_type", "members", "message_model", "name", "subscriptions",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[ClientPeer, OnlineConsumer] = {}
        self.subscriptions: dict[str, TopicSubscription] = {}
        self.consume_type = ConsumeType.CONSUME_PASSIVELY
        self.message_model = MessageModel.CLUSTERING
        self.consume_from_where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET

    @property
    def broadcasting(self) -> bool:
        """Whether every member gets every message, so that members need no list of each other."""
        return self.message_model is MessageModel.BROADCASTING

    def client_ids(self) -> list[str]:
        """List the members' ids, oldest first; an id on two connections comes twice."""
        return [member.client.client_id for member in self.members.values()]

    def find(self, client_id: str) -> ClientPeer | None:
        """Return the first connection of a member."""
        for connection, member in self.members.items():
            if member.client.client_id == client_id:
                return connection
        return None


class Change(msgspec.Struct, frozen=True):
    """A change of a group's members or subscriptions, and the connections to notify."""

    group: str
    updated: bool
    notify: tuple[ClientPeer, ...] = ()


class OnlineConsumers:
    """Consumer groups by name."""

    def __init__(self) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._groups_of: dict[ClientPeer, dict[str, None]] = {}
        self._fingerprints: dict[str, int] = {}

    def get(self, group: str) -> ConsumerGroup | None:
        """Return a group that has members."""
        return self.groups.get(group)

    def subscription(self, group: str, topic: str) -> TopicSubscription | None:
        """Return what a group with members subscribes of a topic."""
        found = self.groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def groups_subscribing(self, topic: str) -> list[str]:
        """List the groups with members that subscribe a topic."""
        return [name for name, group in self.groups.items() if topic in group.subscriptions]

    def register(
        self,
        connection: ClientPeer,
        client: ClientInfo,
        data: ConsumerData,
        *,
        notify: bool,
        now: float,
        keep_subscriptions: bool = False,
    ) -> Change:
        """Record one group in a heartbeat.

        `notify` is the group's own switch. `keep_subscriptions` is for a heartbeat that says it
        leaves unchanged ones out (version 2). A further connection is a change; so are topics that
        came or went. A newer version of a subscription replaces it and is not a change.
        """
        group = self.groups.get(data.group_name)
        if group is None:
            group = self.groups[data.group_name] = ConsumerGroup(data.group_name)
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        updated = self._see(group, connection, client, now)
        if not keep_subscriptions and _subscribe(group, data.subscription_data_set):
            updated = True
        told = updated and notify and not group.broadcasting
        return Change(group.name, updated, tuple(group.members) if told else ())

    def unregister(self, group: str, connection: ClientPeer, *, notify: bool) -> Change:
        """Remove a connection from a group.

        The other members are notified even if the connection was no member, as in Java.
        """
        found = self.groups.get(group)
        if found is None:
            return Change(group, updated=False)
        removed = self._forget(found, connection)
        told = notify and not found.broadcasting
        return Change(group, removed, tuple(found.members) if told else ())

    def closed(self, connection: ClientPeer) -> list[Change]:
        """Remove a closed connection from all its groups.

        The other members are notified whatever the group's own switch says, as in Java.
        """
        changes = []
        for name in tuple(self._groups_of.get(connection, ())):
            group = self.groups[name]
            self._forget(group, connection)
            told = () if group.broadcasting else tuple(group.members)
            changes.append(Change(name, updated=True, notify=told))
        return changes

    def expire(self, now: float, timeout: float) -> list[ClientPeer]:
        """Remove connections without a heartbeat for too long; return those to be closed.

        No member is notified: closing finds them gone already, and members learn at their own next
        rebalance, as in Java.
        """
        silent: dict[ClientPeer, None] = {}
        for group in tuple(self.groups.values()):
            for connection, member in tuple(group.members.items()):
                if now - member.last_seen > timeout:
                    self._forget(group, connection)
                    silent[connection] = None
        return list(silent)

    def fingerprint(self, group: str, fingerprint: int) -> bool:
        """Keep the fingerprint of a group's heartbeats; return whether it has changed.

        A plain heartbeat has fingerprint 0.
        """
        known = self._fingerprints.get(group)
        self._fingerprints[group] = fingerprint
        return known is not None and known != fingerprint

    def _see(
        self, group: ConsumerGroup, connection: ClientPeer, client: ClientInfo, now: float
    ) -> bool:
        """Refresh a member; return whether its connection is new."""
        member = group.members.get(connection)
        if member is None:
            group.members[connection] = OnlineConsumer(client, now)
            self._groups_of.setdefault(connection, {})[group.name] = None
            return True
        if member.client.client_id != client.client_id:
            member.client = client  # another client on the same connection is not a change
        member.last_seen = now
        return False

    def _forget(self, group: ConsumerGroup, connection: ClientPeer) -> bool:
        """Remove a connection from a group, and the group with its last one."""
        if group.members.pop(connection, None) is None:
            return False
        names = self._groups_of[connection]
        del names[group.name]
        if not names:
            del self._groups_of[connection]
        if not group.members:
            del self.groups[group.name]
            self._fingerprints.pop(group.name, None)
        return True


def _subscribe(group: ConsumerGroup, wanted: Iterable[Subscription]) -> bool:
    """Replace a group's subscriptions by those of a heartbeat; return whether topics changed."""
    topics = group.subscriptions
    updated = False
    named = set()
    for subscription in wanted:
        known = topics.get(subscription.topic)
        if known is None:
            updated = True
        if known is None or subscription.sub_version > known.subscription.sub_version:
            topics[subscription.topic] = subscribed(subscription, known)
        named.add(subscription.topic)
    for topic in [topic for topic in topics if topic not in named]:
        del topics[topic]
        updated = True
    return updated
