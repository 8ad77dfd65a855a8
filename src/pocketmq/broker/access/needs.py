"""What each request needs under the rules of 5.x (Java: DefaultAuthorizationContextBuilder).

A table by request code. Codes that are not in it need no right, only a user. Java leaves out some
through which messages can be taken or a broker changed; here they need what their siblings need.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pocketmq.broker.access.accounts import popped_from
from pocketmq.broker.access.rules import Action, Kind, Resource
from pocketmq.errors import MQError, ResponseCode, server_error
from pocketmq.model.names import RETRY_PREFIX, is_retry_topic
from pocketmq.protocol.bodies.heartbeat import Heartbeat
from pocketmq.protocol.bodies.locks import LockQueues
from pocketmq.protocol.bodies.pop import BatchAcks
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import decode_body


class Need(NamedTuple):
    """One of these actions on a resource."""

    resource: Resource
    actions: tuple[Action, ...]


class Needs(NamedTuple):
    """How the needs of a request are found."""

    read: Callable[[Command], list[Need]]
    keys: tuple[str, ...] | None
    """The fields they depend on; None if the body counts."""


_TOPIC_AND_GROUP = ("topic", "consumerGroup")
_PUB, _SUB, _GET = (Action.PUB,), (Action.SUB,), (Action.GET,)
_SUB_GET, _SUB_UPDATE = (Action.SUB, Action.GET), (Action.SUB, Action.UPDATE)
_CREATE, _UPDATE, _DELETE = (Action.CREATE,), (Action.UPDATE,), (Action.DELETE,)


def deciding_fields(code: int, fields: Mapping[str, str]) -> tuple[str | None, ...] | None:
    """Give the fields on which a request's needs depend; None if its body counts."""
    rule = _BY_CODE.get(code)
    if rule is None:
        return ()
    return None if rule.keys is None else tuple([fields.get(key) for key in rule.keys])


def needs_of(request: Command, cluster: str) -> list[Need]:
    """Give what a request needs; raise `ServerError` in Java's words if it cannot be told."""
    rule = _BY_CODE.get(request.code)
    if rule is None:
        whole = Resource(Kind.CLUSTER, cluster)
        if request.code in _CHANGING:
            return [Need(whole, _UPDATE)]
        return [Need(whole, _GET)] if request.code in _READING else []
    try:
        return rule.read(request)
    except MQError as error:
        remark = "parse authorization context error."
        raise server_error(ResponseCode.NO_PERMISSION, remark) from error


def _group(name: str | None) -> Resource:
    return Resource(Kind.GROUP, None if name is None else name.removeprefix(RETRY_PREFIX))


def _topic(name: str | None) -> Resource:
    """Name a topic; a retry topic belongs to its group."""
    if name is not None and is_retry_topic(name):
        return _group(name)
    return Resource(Kind.TOPIC, name)


def _sending(topic_key: str, group_key: str) -> Needs:
    def needs(request: Command) -> list[Need]:
        topic, group = request.ext.get(topic_key), request.ext.get(group_key)
        if topic is not None and is_retry_topic(topic):
            return [Need(_group(group if group and group.strip() else topic), _SUB)]
        return [Need(_topic(topic), _PUB)]

    return Needs(needs, (topic_key, group_key))


def _taking(actions: tuple[Action, ...]) -> Needs:
    def needs(request: Command) -> list[Need]:
        return _taken(request.ext.get("topic"), request.ext.get("consumerGroup"), actions)

    return Needs(needs, _TOPIC_AND_GROUP)


def _taken(topic: str | None, group: str | None, actions: tuple[Action, ...]) -> list[Need]:
    """Need topic and group; a group's own retry topic goes with it, that of another does not."""
    wanted = dict.fromkeys((_topic(topic), _group(group)))
    return [Need(resource, actions) for resource in wanted]


def _fields(actions: tuple[Action, ...], **kinds: Kind) -> Needs:
    """Need what the named fields hold, as far as they are given; lists are split at `;` or `,`."""

    def needs(request: Command) -> list[Need]:
        found = []
        for key, kind in kinds.items():
            value = request.ext.get(key)
            if value is None:
                continue
            names = value.split(_LISTS[key]) if key in _LISTS else [value]
            for name in filter(None, names):
                resource = _topic(name) if kind is Kind.TOPIC else Resource(kind, name)
                found.append(Need(resource, actions))
        return found

    return Needs(needs, tuple(kinds))


_LISTS = {"topicList": ";", "filterGroups": ","}


def _heartbeat(request: Command) -> list[Need]:
    wanted: dict[Resource, None] = {}
    for data in decode_body(request.body, Heartbeat).consumer_data_set:
        topics = [_topic(subscription.topic) for subscription in data.subscription_data_set]
        wanted |= dict.fromkeys([_group(data.group_name), *topics])
    return [Need(resource, _SUB) for resource in wanted]


def _leaving(request: Command) -> list[Need]:
    group = request.ext.get("consumerGroup")
    return [Need(_group(group), _SUB)] if group and group.strip() else []


def _locking(request: Command) -> list[Need]:
    body = decode_body(request.body, LockQueues)
    topics = [_topic(queue.topic) for queue in body.mq_set]
    wanted = dict.fromkeys([_group(body.consumer_group), *topics])
    return [Need(resource, _SUB) for resource in wanted]


def _ending(request: Command) -> list[Need]:
    topic = request.ext.get("topic")
    return [Need(_topic(topic), _PUB)] if topic and topic.strip() else []


def _ack(request: Command) -> list[Need]:
    topic, group = request.ext.get("topic"), request.ext.get("consumerGroup")
    return _taken(popped_from(topic, group), group, _SUB)


def _batch_ack(request: Command) -> list[Need]:
    acks = decode_body(request.body, BatchAcks).acks
    pairs = dict.fromkeys((ack.topic, ack.consumer_group) for ack in acks)
    return [
        need for topic, group in pairs for need in _taken(popped_from(topic, group), group, _SUB)
    ]


_T, _G = Kind.TOPIC, Kind.GROUP
_BY_CODE: dict[int, Needs] = {
    Code.SEND_MESSAGE: _sending("topic", "group"),
    Code.SEND_MESSAGE_V2: _sending("b", "a"),
    Code.SEND_BATCH_MESSAGE: _sending("b", "a"),
    Code.RECALL_MESSAGE: _fields(_PUB, topic=_T),
    Code.END_TRANSACTION: Needs(_ending, ("topic",)),
    Code.CONSUMER_SEND_MSG_BACK: _fields(_SUB, group=_G),
    Code.PULL_MESSAGE: _taking(_SUB),
    Code.LITE_PULL_MESSAGE: _taking(_SUB),  # Java: nothing
    Code.QUERY_MESSAGE: _fields(_SUB_GET, topic=_T),
    Code.HEART_BEAT: Needs(_heartbeat, None),
    Code.UNREGISTER_CLIENT: Needs(_leaving, ("consumerGroup",)),
    Code.GET_CONSUMER_LIST_BY_GROUP: _fields(_SUB_GET, consumerGroup=_G),
    Code.QUERY_CONSUMER_OFFSET: _taking(_SUB_GET),
    Code.UPDATE_CONSUMER_OFFSET: _taking(_SUB_UPDATE),
    Code.LOCK_BATCH_MQ: Needs(_locking, None),
    Code.UNLOCK_BATCH_MQ: Needs(_locking, None),
    Code.POP_MESSAGE: _taking(_SUB),
    Code.PEEK_MESSAGE: _taking(_SUB),
    Code.ACK_MESSAGE: Needs(_ack, _TOPIC_AND_GROUP),
    Code.BATCH_ACK_MESSAGE: Needs(_batch_ack, None),  # Java: nothing
    Code.CHANGE_MESSAGE_INVISIBLETIME: Needs(_ack, _TOPIC_AND_GROUP),
    Code.NOTIFICATION: _taking(_SUB),
    Code.POLLING_INFO: _fields(_GET, consumerGroup=_G, topic=_T),
    Code.UPDATE_AND_CREATE_TOPIC: _fields(_CREATE, topic=_T),
    Code.DELETE_TOPIC_IN_BROKER: _fields(_DELETE, topic=_T),
    Code.GET_TOPIC_CONFIG: _fields(_GET, topic=_T),
    Code.GET_TOPIC_STATS_INFO: _fields(_GET, topic=_T),
    Code.SEARCH_OFFSET_BY_TIMESTAMP: _fields(_GET, topic=_T),
    Code.GET_MAX_OFFSET: _fields(_GET, topic=_T),
    Code.GET_MIN_OFFSET: _fields(_GET, topic=_T),
    Code.GET_EARLIEST_MSG_STORETIME: _fields(_GET, topic=_T),
    Code.VIEW_MESSAGE_BY_ID: _fields(_GET, topic=_T),
    Code.QUERY_TOPIC_CONSUME_BY_WHO: _fields(_GET, topic=_T),
    Code.RESUME_CHECK_HALF_MESSAGE: _fields(_UPDATE, topic=_T),
    Code.DELETE_SUBSCRIPTIONGROUP: _fields(_DELETE, groupName=_G),
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: _fields(_GET, group=_G),
    Code.GET_CONSUMER_CONNECTION_LIST: _fields(_GET, consumerGroup=_G),
    Code.GET_CONSUMER_RUNNING_INFO: _fields(_GET, consumerGroup=_G),
    Code.QUERY_TOPICS_BY_CONSUMER: _fields(_GET, group=_G),
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: _fields(_GET, group=_G, topic=_T),
    Code.QUERY_CONSUME_TIME_SPAN: _fields(_GET, topic=_T, group=_G),
    Code.QUERY_CONSUME_QUEUE: _fields(_GET, topic=_T, consumerGroup=_G),
    Code.QUERY_CORRECTION_OFFSET: _fields(_GET, filterGroups=_G, compareGroup=_G, topic=_T),
    Code.GET_CONSUME_STATS: _fields(_GET, consumerGroup=_G, topic=_T, topicList=_T),
    Code.INVOKE_BROKER_TO_RESET_OFFSET: _fields(_UPDATE, group=_G, topic=_T),
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _fields(_GET, topic=_T, group=_G),
    Code.CONSUME_MESSAGE_DIRECTLY: _fields(_SUB, consumerGroup=_G, topic=_T),
    Code.CLONE_GROUP_OFFSET: _fields(_UPDATE, destGroup=_G, topic=_T),
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN: _fields(_UPDATE, group=_G, topic=_T),
}

_READING = frozenset[int](
    (
        Code.GET_PRODUCER_CONNECTION_LIST,
        Code.GET_ALL_PRODUCER_INFO,
        Code.GET_BROKER_CONSUME_STATS,
        Code.VIEW_BROKER_STATS_DATA,
        Code.QUERY_DATA_VERSION,
        Code.AUTH_GET_USER,
        Code.AUTH_LIST_USER,
        Code.AUTH_GET_ACL,
        Code.AUTH_LIST_ACL,
    )
)
_CHANGING = frozenset[int](
    (
        Code.AUTH_CREATE_USER,
        Code.AUTH_UPDATE_USER,
        Code.AUTH_DELETE_USER,
        Code.AUTH_CREATE_ACL,
        Code.AUTH_UPDATE_ACL,
        Code.AUTH_DELETE_ACL,
        Code.RESET_MASTER_FLUSH_OFFSET,
        Code.EXCHANGE_BROKER_HA_INFO,
        Code.NOTIFY_MIN_BROKER_ID_CHANGE,
        Code.UPDATE_BROKER_CONFIG,  # from here on Java asks for nothing
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Code.SET_MESSAGE_REQUEST_MODE,
        Code.CLEAN_EXPIRED_CONSUMEQUEUE,
        Code.CLEAN_UNUSED_TOPIC,
        Code.DELETE_EXPIRED_COMMITLOG,
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        Code.GET_BROKER_CLUSTER_ACL_CONFIG,
    )
)
