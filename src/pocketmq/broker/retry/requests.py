"""Messages a consumer could not handle (36): back later by the group's retry topic, or given up.

A message comes back as a copy with one more try on its count, delayed by a level that grows with
the tries. After the last try it goes to the group's dead letters, where nobody consumes it unasked.
"""

import random

from pocketmq.broker.core.refusals import OVERLOADED
from pocketmq.broker.retry.dead_letters import find_group, make_group_topic, origin_of
from pocketmq.broker.retry.rules import DEAD_LETTER_QUEUES, level_of_retry, retry_limit, retry_of
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.writing.appending import place
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import properties as names
from pocketmq.model.flags import Permission
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.names import dead_letter_topic, retry_topic
from pocketmq.model.topic_config import TopicConfig
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG, Command
from pocketmq.protocol.record_scan import RecordView
from pocketmq.protocol.requests.sending import SendBackRequest

_UNIT_SUB = 2


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
        topic = make_group_topic(state, dead_letter_topic(header.group), DEAD_LETTER_QUEUES)
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
    group = find_group(state, name)
    if not state.config.broker_permission & Permission.WRITE:
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the broker[{state.address.rpartition(':')[0]}] sending message is forbidden",
        )
    return group


def _checked_topic(state: BrokerState, header: SendBackRequest, queues: int) -> TopicConfig:
    flag = _UNIT_SUB if header.unit_mode else 0
    topic = make_group_topic(state, retry_topic(header.group), queues, sys_flag=flag)
    if not topic.perm & Permission.WRITE:
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic.topic_name}] sending message is forbidden",
        )
    return topic


HANDLERS: dict[RequestCode, Handler] = {RequestCode.CONSUMER_SEND_MSG_BACK: send_back}
