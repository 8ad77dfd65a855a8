"""Messages a consumer could not handle (36): back later by the group's retry topic, or given up.

A message comes back as a copy with one more try on its count, delayed by a level that grows with
the tries. After the last try it goes to the group's dead letters, where nobody consumes it unasked.
"""

import random

from pocketmq.broker.appending import Draft, place
from pocketmq.broker.dead_letters import origin_of
from pocketmq.broker.handlers.sending import OVERLOADED
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.targets import MORE_HELP
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import properties as names
from pocketmq.model.delay import retry_level
from pocketmq.model.flags import Permission
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.names import dead_letter_topic, retry_topic
from pocketmq.model.topic_config import TopicConfig
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG, Command
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.protocol.peers import Gate
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.record_scan import RecordView
from pocketmq.protocol.requests.sending import SendBackRequest

DEAD_LETTER_QUEUES = 1
_UNIT_SUB = 2


def level_of_retry(tries: int, limit: int, asked: int) -> int | None:
    """Give the delay level at which a message comes back; None if it is given up.

    `tries` counts those that failed before this one. The consumer may ask for a level, or for none
    with 0; a negative one gives the message up.
    """
    if asked < 0 or tries >= limit:
        return None
    return asked or retry_level(tries)


def retry_limit(group: GroupConfig, client_version: int, client_limit: int | None) -> int:
    """Give how often a group tries: as its consumer says, if it is new enough to mean it."""
    if client_limit is not None and client_version >= Gate.MAX_RECONSUME_TIMES:
        return client_limit
    return group.retry_max_times


def retry_of(failed: RecordView, level: int | None) -> Draft:
    """Make the copy of a failed message that comes back, or is given up if there is no level.

    Its topic is the one it first came from; the caller sends it elsewhere.
    """
    topic = failed.topic_bytes.decode("utf-8", "replace")
    properties = decode_properties(failed.property_bytes)
    properties.setdefault(names.RETRY_TOPIC, topic)
    properties[names.WAIT] = "false"
    properties[names.DELAY_LEVEL] = str(level or 0)
    if not properties.get(names.ORIGIN_MESSAGE_ID, "").strip():
        properties[names.ORIGIN_MESSAGE_ID] = encode_offset_id(
            failed.store_host_bytes, failed.commit_log_offset
        )
    return Draft(
        topic=topic,
        queue_id=0,
        body=failed.stored_body,
        properties=properties,
        flag=failed.flag,
        sys_flag=failed.sys_flag,
        born_timestamp_ms=failed.born_timestamp_ms,
        born_host=failed.born_host_bytes,
        reconsume_times=min(failed.reconsume_times + 1, 2**31 - 1),
    )


def send_back(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Have a message delivered again later, or put it to the dead letters."""
    header = request.header(SendBackRequest)
    if state.turn.overloaded:
        raise server_error(ResponseCode.SYSTEM_BUSY, OVERLOADED)
    group = _checked_group(state, header.group)
    if group.retry_queue_nums <= 0:  # a group without retries: the message is done with
        return request.reply(ResponseCode.SUCCESS)
    topic = _checked_topic(state, header, group.retry_queue_nums)
    found = state.store.record_at(header.offset)
    if found is None:
        raise server_error(
            ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}"
        )
    failed = RecordView(found, 0)
    limit = retry_limit(group, request.version, header.max_reconsume_times)
    level = level_of_retry(failed.reconsume_times, limit, header.delay_level)
    draft = retry_of(failed, level)
    if level is None:
        topic = _topic(state, dead_letter_topic(header.group), DEAD_LETTER_QUEUES)
        draft.topic = topic.topic_name
    else:
        draft.topic = topic.topic_name
        # Java takes any of the group's number, and loses those the topic has no queue for.
        queues = max(1, min(group.retry_queue_nums, topic.read_queue_nums))
        draft.queue_id = random.randrange(queues)  # noqa: S311 - which queue is no secret
    save_changes(state)
    origin = origin_of(state, draft)
    # Other properties must not redirect it: it was half of a transaction, or timed, only once.
    place(state, draft, () if level is None else (names.DELAY_LEVEL,))
    table = state.stats.dead if level is None else state.stats.sent_back
    state.stats.count(table, origin, header.group)
    if not request.flag & ONEWAY_FLAG:
        frame = request.reply(ResponseCode.SUCCESS).encode()
        state.turn.answer_stored(connection, request, frame, wait=False)
    return None


def _checked_group(state: BrokerState, name: str) -> GroupConfig:
    group = state.groups.find(
        name,
        auto_create=state.config.auto_create_subscription_group,
        now_ms=state.turn.now_ms,
    )
    if group is None:
        raise server_error(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {name} {MORE_HELP}",
        )
    if not state.config.broker_permission & Permission.WRITE:
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the broker[{state.address.rpartition(':')[0]}] sending message is forbidden",
        )
    return group


def _checked_topic(state: BrokerState, header: SendBackRequest, queues: int) -> TopicConfig:
    flag = _UNIT_SUB if header.unit_mode else 0
    topic = _topic(state, retry_topic(header.group), queues, flag)
    if not topic.perm & Permission.WRITE:
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic.topic_name}] sending message is forbidden",
        )
    return topic


def _topic(state: BrokerState, name: str, queues: int, flag: int = 0) -> TopicConfig:
    topic = state.topics.create_for_group(name, queues, sys_flag=flag, now_ms=state.turn.now_ms)
    if topic is None:
        raise server_error(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
    return topic


HANDLERS: dict[RequestCode, Handler] = {RequestCode.CONSUMER_SEND_MSG_BACK: send_back}
