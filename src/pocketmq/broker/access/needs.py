"""What a request needs: resources and actions, read from its fields and body. Pure.

Owns the ways to read them; `needs_by_code` says which request is read in which way. A field that
decides and is absent or empty names no resource, which only a rule for all resources of its kind
covers. Java passes over such fields; with `javaAuthorization` so do we.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pocketmq.broker.access.rules import Action, Resource, ResourceKind
from pocketmq.model import names as topic_names
from pocketmq.protocol import Command, decode_body
from pocketmq.protocol.requests import assignment, membership, pop


class Need(NamedTuple):
    """One of these actions on a resource; without actions, nothing but to be a user."""

    resource: Resource
    actions: tuple[Action, ...]


ReadNeeds: TypeAlias = Callable[[Command, str], list[Need]]
"""Reads the needs of a request to a broker of a cluster; may raise `MQError`."""


class Needs(NamedTuple):
    """How the needs of one kind of request are found."""

    read: ReadNeeds
    keys: tuple[str, ...] | None
    """The fields they depend on; None if something else counts, too."""
    java: ReadNeeds
    """As Java reads them."""
    position: Callable[[Command], int | None] | None = None
    """Where the commit log has the record that the request is about."""
    on_record: tuple[Action, ...] = ()
    """What is needed on that record's own topic."""


TOPIC_AND_GROUP = ("topic", "consumerGroup")
_HOLDING = frozenset(
    {
        topic_names.HALF_TOPIC,
        topic_names.DISCARDED_HALF_TOPIC,
        topic_names.SCHEDULE_TOPIC,
        topic_names.TIMER_TOPIC,
    }
)
PUB, SUB, GET, UPDATE = (Action.PUB,), (Action.SUB,), (Action.GET,), (Action.UPDATE,)
ANYBODY = Need(Resource(ResourceKind.ANY, None), ())
"""Allowed to every user."""


def nothing(_: Command, __: str) -> list[Need]:
    """Need to be a user."""
    return [ANYBODY]


def group_resource(name: str | None) -> Resource:
    """Name a group, also by its retry topic."""
    return Resource(
        ResourceKind.GROUP,
        name.removeprefix(topic_names.RETRY_PREFIX) if name and name.strip() else None,
    )


def topic_resource(name: str | None) -> Resource:
    """Name a topic; a retry topic belongs to its group."""
    if name is None or not name.strip():
        return Resource(ResourceKind.TOPIC, None)
    return (
        group_resource(name)
        if topic_names.is_retry_topic(name)
        else Resource(ResourceKind.TOPIC, name)
    )


def on_cluster(actions: tuple[Action, ...], *, in_java: bool = False) -> Needs:
    """Need actions on the whole cluster; Java needs them too, or nothing."""

    def needs(_: Command, cluster: str) -> list[Need]:
        return [Need(Resource(ResourceKind.CLUSTER, cluster), actions)]

    return Needs(needs, (), needs if in_java else nothing)


def sending(topic_key: str) -> Needs:
    """Need to publish; to a retry topic, to belong to the group whose topic it is."""

    def needs(request: Command, _: str) -> list[Need]:
        return _sent_to(request.ext.get(topic_key))

    return Needs(needs, (topic_key,), needs)


def replying(topic_key: str) -> Needs:
    """Need nothing to reply by the cluster's own topic for replies, else to publish.

    The client that asked recognises a reply by a number that no other client can guess. A broker
    stores replies in the topic that is named, which must not be another way to send.
    """

    def needs(request: Command, cluster: str) -> list[Need]:
        topic = request.ext.get(topic_key)
        return [ANYBODY] if topic == f"{cluster}_REPLY_TOPIC" else _sent_to(topic)

    return Needs(needs, (topic_key,), nothing)


def _sent_to(topic: str | None) -> list[Need]:
    resource = topic_resource(topic)
    return [Need(resource, SUB if resource.kind is ResourceKind.GROUP else PUB)]


def taking(actions: tuple[Action, ...], *, in_java: bool = True) -> Needs:
    """Need a topic and a group."""

    def needs(request: Command, _: str) -> list[Need]:
        return _taken(request.ext.get("topic"), request.ext.get("consumerGroup"), actions)

    return Needs(needs, TOPIC_AND_GROUP, needs if in_java else nothing)


def shared(rule: Needs) -> Needs:
    """Need the cluster, too, where a topic holds messages of all others for a while.

    A rule for all topics covers it; one that denies the topic they are for does not.
    """

    def needs(request: Command, cluster: str) -> list[Need]:
        found = rule.read(request, cluster)
        if request.ext.get("topic") in _HOLDING:
            found = [
                *found,
                Need(Resource(ResourceKind.CLUSTER, cluster), (Action.GET, Action.LIST)),
            ]
        return found

    return rule._replace(read=needs)


def _taken(topic: str | None, group: str | None, actions: tuple[Action, ...]) -> list[Need]:
    """Need topic and group; a group's own retry topic goes with it, that of another does not."""
    wanted = dict.fromkeys((topic_resource(topic), group_resource(group)))
    return [Need(resource, actions) for resource in wanted]


_LISTS = {"topicList": ";", "filterGroups": ","}


def fields(
    actions: tuple[Action, ...], optional: tuple[str, ...] = (), **kinds: ResourceKind
) -> Needs:
    """Need what the named fields hold; those that are optional, if they are there.

    Lists are split at `;` or `,`.
    """

    def found(request: Command, skipped: tuple[str, ...]) -> list[Need]:
        needs = []
        for key, kind in kinds.items():
            value = request.ext.get(key)
            names = (value or "").split(_LISTS[key]) if key in _LISTS else [value]
            for name in names:
                if (name is None or not name.strip()) and key in skipped:
                    continue
                resource = (
                    topic_resource(name)
                    if kind is ResourceKind.TOPIC
                    else Resource(kind, name or None)
                )
                needs.append(Need(resource, actions))
        return needs

    every = tuple(kinds)
    return Needs(
        lambda request, _: found(request, optional), every, lambda request, _: found(request, every)
    )


def ending(request: Command, _: str) -> list[Need]:
    """Need the topic that is named, if it is one that producers send to.

    Clients that were asked about a half message name the topic it waits in, as in the question.
    """
    topic = request.ext.get("topic")
    if topic is None or not topic.strip() or topic == topic_names.HALF_TOPIC:
        return []
    return [Need(topic_resource(topic), PUB)]


def cloning(request: Command, _: str) -> list[Need]:
    """Need to change one group and to know another."""
    source, target = request.ext.get("srcGroup"), request.ext.get("destGroup")
    topic = request.ext.get("topic")
    needs = [Need(Resource(ResourceKind.GROUP, target or None), UPDATE)]
    known = (Action.GET, Action.SUB, Action.UPDATE)
    needs.append(Need(Resource(ResourceKind.GROUP, source or None), known))
    if topic and topic.strip():
        needs.append(Need(topic_resource(topic), UPDATE))
    return needs


def heartbeat(request: Command, _: str) -> list[Need]:
    """Need the consumer groups and their topics.

    RocketMQ has no resource for producer groups. What their members get, questions about half
    messages and replies, is guarded where it is sent: see `BrokerGate.may_send` and `same_user`.
    """
    wanted: dict[Resource, None] = {}
    for data in decode_body(request.body, membership.Heartbeat).consumer_data_set:
        topics = [topic_resource(each.topic) for each in data.subscription_data_set]
        wanted |= dict.fromkeys([group_resource(data.group_name), *topics])
    return [Need(resource, SUB) for resource in wanted] or [ANYBODY]


def leaving(request: Command, _: str) -> list[Need]:
    """Need the consumer group that is left; a producer's own connection may always leave."""
    group = request.ext.get("consumerGroup")
    return [Need(group_resource(group), SUB)] if group and group.strip() else [ANYBODY]


def checking(request: Command, _: str) -> list[Need]:
    """Need the group and the topic of a subscription that is tried out."""
    check = decode_body(request.body or b"{}", membership.ClientCheck)
    wanted = check.subscription_data
    return _taken(None if wanted is None else wanted.topic, check.group, SUB)


def assigning(request: Command, _: str) -> list[Need]:
    """Need the topic and the group of which a member asks for its queues."""
    query = decode_body(request.body, assignment.AssignmentQuery)
    return _taken(query.topic, query.consumer_group, (Action.SUB, Action.GET))


def locking(request: Command, _: str) -> list[Need]:
    """Need the group and the topics of the queues."""
    body = decode_body(request.body, assignment.LockQueues)
    topics = [topic_resource(queue.topic) for queue in body.mq_set]
    wanted = dict.fromkeys([group_resource(body.consumer_group), *topics])
    return [Need(resource, SUB) for resource in wanted]


def ack(request: Command, _: str) -> list[Need]:
    """Need the topic and the group a message was popped of."""
    topic, group = request.ext.get("topic"), request.ext.get("consumerGroup")
    return _taken(popped_from(topic, group), group, SUB)


def batch_ack(request: Command, _: str) -> list[Need]:
    """Need the topics and groups messages were popped of; to acknowledge none, nothing."""
    acks = decode_body(request.body or b"{}", pop.BatchAcks).acks
    pairs = dict.fromkeys((each.topic, each.consumer_group) for each in acks)
    wanted = [
        need for topic, group in pairs for need in _taken(popped_from(topic, group), group, SUB)
    ]
    return wanted or [Need(topic_resource(None), SUB)]


def popped_from(topic: str | None, group: str | None) -> str | None:
    """Return the topic of a popped message; a redelivered one is in a topic of group and topic."""
    for mark in ("_", "+"):
        start = f"{topic_names.RETRY_PREFIX}{group}{mark}"
        if topic is not None and topic.startswith(start):
            return topic.removeprefix(start)
    return topic
