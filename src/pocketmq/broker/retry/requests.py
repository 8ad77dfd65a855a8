"""Messages a consumer could not handle: redelivered through its retry topic, then dead letters.

A message comes back as a copy with one more attempt on its count, delayed by a level that grows
with the attempts. After the last one it goes to the group's dead-letter topic. Consumers send it
back by its position (36), or, when that fails and always if they are orderly, as a message to the
retry topic.
"""

import random

from pocketmq.broker.core.refusals import MORE_HELP, OVERLOADED
from pocketmq.broker.retry import rules
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import Answer, AnyHandler, BrokerState
from pocketmq.broker.writing.appending import place
from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import GroupConfig, Permission, TopicConfig, property_names
from pocketmq.model.names import RETRY_PREFIX, dead_letter_topic, retry_topic
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RecordView, RequestCode
from pocketmq.protocol.inner_batch import INNER_BATCH
from pocketmq.protocol.requests.sending import SendBackRequest

_UNIT_SUB = 2


def send_back(
    state: BrokerState, connection: Connection, request: Command, header: SendBackRequest
) -> Answer:
    """Requeue a message for redelivery, or send it to the dead-letter topic."""
    if state.batch.overloaded:
        raise server_error(ResponseCode.SYSTEM_BUSY, OVERLOADED)
    group = _checked_group(state, header.group)
    if group.retry_queue_nums <= 0:  # a group without retries: the message is discarded
        return request.reply(ResponseCode.SUCCESS)
    topic = _checked_topic(state, header, group.retry_queue_nums)
    found = state.store.record_at(header.offset)
    if found is None:
        raise server_error(
            ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}"
        )
    failed = RecordView(found, 0)
    if failed.sys_flag & INNER_BATCH:
        # As in Java: which of its messages failed is not said, and the consumer sends that itself.
        raise server_error(ResponseCode.SYSTEM_ERROR, "MESSAGE_ILLEGAL")
    limit = rules.retry_limit(group, request.version, header.max_reconsume_times)
    level = rules.level_of_retry(failed.reconsume_times, limit, header.delay_level)
    draft = rules.retry_of(failed, level)
    if level is None:
        topic = make_group_topic(state, dead_letter_topic(header.group), rules.DEAD_LETTER_QUEUES)
        draft.topic = topic.topic_name
    else:
        draft.topic = topic.topic_name
        # Java takes any of the group's number, and loses messages if the topic has fewer queues.
        queues = max(1, min(group.retry_queue_nums, topic.read_queue_nums))
        draft.queue_id = random.randrange(queues)  # noqa: S311 - which queue is no secret
    save_changes(state)
    origin = origin_of(state, draft)
    # Other properties must not redirect it: it was half of a transaction, or timed, only once.
    place(state, draft, () if level is None else (property_names.DELAY_LEVEL,))
    table = state.stats.dead if level is None else state.stats.sent_back
    state.stats.count(table, origin, header.group)
    if not request.flag & ONEWAY_FLAG:
        frame = request.reply(ResponseCode.SUCCESS).encode()
        state.batch.answer_stored(connection, request, frame, wait=False)
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


def origin_of(state: BrokerState, draft: Draft) -> str:
    """Return the topic a retry first came from; clients write it, so it must exist."""
    topic = draft.properties.get(property_names.RETRY_TOPIC, draft.topic)
    return topic if topic in state.topics else draft.topic


def find_group(state: BrokerState, name: str) -> GroupConfig:
    """Return the settings of a group whose message failed. Raises `ServerError` if unknown."""
    group = state.groups.find(
        name,
        auto_create=state.config.auto_create_subscription_group,
        now_ms=state.batch.now_ms,
    )
    if group is None:
        raise server_error(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {name} {MORE_HELP}",
        )
    return group


def make_group_topic(
    state: BrokerState, name: str, queues: int, *, sys_flag: int = 0
) -> TopicConfig:
    """Return a group's topic of retries or dead letters, which may be new. Raises `ServerError`."""
    now_ms = state.batch.now_ms
    topic = state.topics.create_for_group(name, queues, sys_flag=sys_flag, now_ms=now_ms)
    if topic is None:
        raise server_error(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
    return topic


def dead_letter_exhausted(
    state: BrokerState, draft: Draft, client_version: int, client_limit: int | None
) -> None:
    """Point a draft for a retry topic at the dead letters after its last retry.

    Groups with queue locks consume in order and retry themselves: what they send here always goes
    to the dead letters. Raises `ServerError` for an unknown group.
    """
    group = draft.topic.removeprefix(RETRY_PREFIX)
    limit = rules.retry_limit(find_group(state, group), client_version, client_limit)
    tries = draft.reconsume_times - 1  # the consumer has counted the one that failed
    if not rules.retries_exhausted(tries, limit) and state.locks.all_free(group, state.steady()):
        return
    make_group_topic(state, dead_letter_topic(group), rules.DEAD_LETTER_QUEUES)
    save_changes(state)
    state.stats.count(state.stats.dead, origin_of(state, draft), group)
    rules.redirect_to_dead_letters(draft, group)


HANDLERS: dict[RequestCode, AnyHandler] = {RequestCode.CONSUMER_SEND_MSG_BACK: send_back}
