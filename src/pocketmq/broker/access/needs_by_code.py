"""What each request needs under access control: one entry for every request a broker serves.

Java: DefaultAuthorizationContextBuilder and the annotations of its headers. The request's row in
`protocol.requests` states the right if header fields alone decide it, or if it is one on the
cluster that Java does not ask for; the tables here have all others. A request with neither is
refused to all but super users. Where Java requires nothing though messages, settings or names of
other users are at stake, an entry says what similar requests need; `Needs.java` keeps Java's way.

For a request that names a record by its position in the commit log the record's own topic decides:
whatever topic such a request names, the position may be that of any other record.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from pocketmq.broker.access import needs as read
from pocketmq.broker.access.rules import Action, ResourceKind
from pocketmq.errors import InvalidInput, MQError, ResponseCode, server_error
from pocketmq.model import property_names
from pocketmq.model.names import DISCARDED_HALF_TOPIC, HALF_TOPIC, is_system_topic
from pocketmq.protocol import Command, RecordView
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.header import read_int64
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.request import RequestRight
from pocketmq.store import QueueIndex


class Records(Protocol):
    """What is needed of a store; `MessageStore` has it."""

    def record_at(self, position: int) -> bytes | None:
        """Return the record that begins at a position of the log, if one does."""
        ...

    def queue(self, topic: str, queue_id: int) -> QueueIndex | None:
        """Return a queue, if there is one."""
        ...


def at_offset(key: str) -> Callable[[Command], int | None]:
    """Return what reads a place from a field."""
    return lambda request: read_int64(request.ext.get(key, ""))


def at_message_id(request: Command) -> int | None:
    """Read a place from a message's offset id."""
    try:
        return parse_offset_id(request.ext.get("msgId", "")).commit_log_offset
    except InvalidInput:
        return None


def needs_on_record(
    records: Records, position: int, actions: tuple[Action, ...]
) -> list[read.Need] | None:
    """Return what is needed on the topic of the record at a position; nothing if there is none.

    A message's body can look like a record that reaches into the next ones. So a record counts
    only if its queue has it at that position. None for any other: only super users may read it,
    not users with a rule for all topics: another rule may deny them the topic it reaches into.
    """
    found = records.record_at(position) if position >= 0 else None
    if found is None:
        return []
    record = RecordView(found, 0)
    topic = record.topic_bytes.decode("utf-8", "replace")
    queue = records.queue(topic, record.queue_id)
    if queue is None or queue.position(record.queue_offset) != position:
        return None
    real = find_property(record.property_bytes, property_names.REAL_TOPIC.encode())
    if topic in _HALF and real is not None and actions in _PRODUCERS:
        return [read.Need(read.topic_resource(real.decode("utf-8", "replace")), actions)]
    needs = [read.Need(read.topic_resource(topic), actions)]
    if is_system_topic(topic) and real is not None:  # it waits there for its time
        needs.append(read.Need(read.topic_resource(real.decode("utf-8", "replace")), actions))
    return needs


_HALF = (HALF_TOPIC, DISCARDED_HALF_TOPIC)
_PRODUCERS = (read.PUB, read.UPDATE)
"""Actions of producers, and of who manages their topic: neither has a right on the topics above."""


_T, _G = ResourceKind.TOPIC, ResourceKind.GROUP
_SUB_GET, _SUB_UPDATE = (Action.SUB, Action.GET), (Action.SUB, Action.UPDATE)
_SHOWN = (Action.GET, Action.LIST)


def needs_of(request: Command, cluster: str, *, java: bool = False) -> list[read.Need] | None:
    """Return what a request needs by its fields and body; None if there is no row for it.

    Raises `ServerError` with Java's text if it cannot be read.
    """
    rule = NEEDS.get(request.code)
    if rule is None:
        return None
    try:
        return (rule.java if java else rule.read)(request, cluster)
    except MQError as error:
        remark = "parse authorization context error."
        raise server_error(ResponseCode.NO_PERMISSION, remark) from error


def deciding_fields(code: int, fields: Mapping[str, str]) -> tuple[str | None, ...] | None:
    """Return the fields that alone decide what a request needs; None if more does."""
    rule = NEEDS.get(code)
    if rule is None or rule.keys is None:
        return None
    return tuple([fields.get(key) for key in rule.keys])


def _by_record(rule: read.Needs, position: str, on_record: tuple[Action, ...]) -> read.Needs:
    """Need something on the topic of the record at a position, too: never decided by fields."""
    reader = at_message_id if position == "msgId" else at_offset(position)
    return rule._replace(keys=None, position=reader, on_record=on_record)


def _listed(codes: tuple[Code, ...], rule: read.Needs) -> dict[int, read.Needs]:
    return dict.fromkeys(codes, rule)


def _stated(right: RequestRight) -> read.Needs:
    """Return what a row states."""
    action = Action(right.action)
    if not right.fields:
        return read.on_cluster(_SHOWN if action is Action.GET else (action,))
    kinds = {field: ResourceKind(kind) for field, kind in right.fields}
    return read.fields((action,), right.optional, **kinds)


_LOCKING = read.Needs(read.locking, None, read.locking)
_ACK = read.Needs(read.ack, read.TOPIC_AND_GROUP, read.ack)
_MESSAGES: dict[int, read.Needs] = {
    Code.SEND_MESSAGE: read.sending("topic"),
    Code.SEND_MESSAGE_V2: read.sending("b"),
    Code.SEND_BATCH_MESSAGE: read.sending("b"),
    Code.SEND_REPLY_MESSAGE: read.replying("topic"),
    Code.SEND_REPLY_MESSAGE_V2: read.replying("b"),
    Code.RECALL_MESSAGE: read.fields(read.PUB, topic=_T),
    # Clients of 4.9 name no topic in the next two: the record's own decides.
    Code.END_TRANSACTION: _by_record(
        read.Needs(read.ending, None, read.fields(read.PUB, topic=_T).java),
        "commitLogOffset",
        read.PUB,
    ),
    Code.VIEW_MESSAGE_BY_ID: _by_record(
        read.fields(read.GET, ("topic",), topic=_T), "offset", read.GET
    ),
    Code.CONSUMER_SEND_MSG_BACK: _by_record(read.fields(read.SUB, group=_G), "offset", read.SUB),
    Code.CONSUME_MESSAGE_DIRECTLY: _by_record(
        read.fields(read.SUB, ("topic",), consumerGroup=_G, topic=_T), "msgId", read.SUB
    ),
    Code.RESUME_CHECK_HALF_MESSAGE: _by_record(
        read.fields(read.UPDATE, ("topic",), topic=_T), "msgId", read.UPDATE
    ),
    Code.PULL_MESSAGE: read.shared(read.taking(read.SUB)),
    Code.LITE_PULL_MESSAGE: read.shared(read.taking(read.SUB, in_java=False)),
    Code.QUERY_MESSAGE: read.shared(read.fields(_SUB_GET, topic=_T)),
    Code.POP_MESSAGE: read.shared(read.taking(read.SUB)),
    Code.PEEK_MESSAGE: read.shared(read.taking(read.SUB)),
    Code.ACK_MESSAGE: _ACK,
    Code.BATCH_ACK_MESSAGE: read.Needs(read.batch_ack, None, read.nothing),
    Code.CHANGE_MESSAGE_INVISIBLETIME: _ACK,
    Code.NOTIFICATION: read.taking(read.SUB),
    Code.POLLING_INFO: read.fields(read.GET, consumerGroup=_G, topic=_T),
    Code.POP_LITE_MESSAGE: read.taking(read.SUB),
}
_MEMBERS: dict[int, read.Needs] = {
    Code.HEART_BEAT: read.Needs(read.heartbeat, None, read.heartbeat),
    Code.UNREGISTER_CLIENT: read.Needs(read.leaving, ("consumerGroup",), read.leaving),
    Code.CHECK_CLIENT_CONFIG: read.Needs(read.checking, None, read.nothing),
    Code.QUERY_ASSIGNMENT: read.Needs(read.assigning, None, read.nothing),
    Code.GET_CONSUMER_LIST_BY_GROUP: read.fields(_SUB_GET, consumerGroup=_G),
    Code.QUERY_CONSUMER_OFFSET: read.taking(_SUB_GET),
    Code.UPDATE_CONSUMER_OFFSET: read.taking(_SUB_UPDATE),
    Code.LOCK_BATCH_MQ: _LOCKING,
    Code.UNLOCK_BATCH_MQ: _LOCKING,
}
_TOOLS: dict[int, read.Needs] = {
    code: _stated(row.right) for code, row in REQUESTS.items() if row.right is not None
} | {
    Code.CLONE_GROUP_OFFSET: read.Needs(
        read.cloning,
        ("srcGroup", "destGroup", "topic"),
        read.fields(read.UPDATE, destGroup=_G, topic=_T).java,
    ),
}
"""Requests whose rows say what they need, and one that two groups decide."""
_GET = read.on_cluster(read.GET, in_java=True)
_CLUSTER: dict[int, read.Needs] = {  # as Java asks for it
    **_listed(
        (
            Code.GET_PRODUCER_CONNECTION_LIST, Code.GET_ALL_PRODUCER_INFO,
            Code.GET_BROKER_CONSUME_STATS, Code.VIEW_BROKER_STATS_DATA, Code.AUTH_GET_USER,
            Code.AUTH_LIST_USER, Code.AUTH_GET_ACL, Code.AUTH_LIST_ACL,
            Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, Code.CONTROLLER_GET_REPLICA_INFO,
            Code.CONTROLLER_GET_NEXT_BROKER_ID, Code.QUERY_DATA_VERSION,
        ),
        _GET,
    ),
    **_listed(
        (
            Code.AUTH_CREATE_USER, Code.AUTH_UPDATE_USER, Code.AUTH_DELETE_USER,
            Code.AUTH_CREATE_ACL, Code.AUTH_UPDATE_ACL, Code.AUTH_DELETE_ACL,
            Code.RESET_MASTER_FLUSH_OFFSET, Code.EXCHANGE_BROKER_HA_INFO,
            Code.NOTIFY_MIN_BROKER_ID_CHANGE, Code.ADD_BROKER, Code.REMOVE_BROKER,
            Code.CONTROLLER_ALTER_SYNC_STATE_SET, Code.CONTROLLER_ELECT_MASTER,
            Code.CONTROLLER_REGISTER_BROKER, Code.NOTIFY_BROKER_ROLE_CHANGED,
            Code.CLEAN_BROKER_DATA, Code.CONTROLLER_APPLY_BROKER_ID,
        ),
        read.on_cluster(read.UPDATE, in_java=True),
    ),
}  # fmt: skip
NEEDS: dict[int, read.Needs] = _MESSAGES | _MEMBERS | _TOOLS | _CLUSTER

READING = frozenset[int](
    {
        Code.VIEW_MESSAGE_BY_ID, Code.QUERY_MESSAGE, Code.PEEK_MESSAGE, Code.POLLING_INFO,
        Code.CHECK_CLIENT_CONFIG, Code.QUERY_ASSIGNMENT, Code.GET_CONSUMER_LIST_BY_GROUP,
        Code.QUERY_CONSUMER_OFFSET,
    }
    | {code for code, row in REQUESTS.items() if row.right and row.right.action == "Get"}
    | {code for code, rule in _CLUSTER.items() if rule is _GET}
)  # fmt: skip
"""Requests that change nothing: the only ones `requireSignedCode` takes unbound."""
