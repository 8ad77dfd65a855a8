"""Retries that a consumer sends itself: to its retry topic, or after too many to the dead letters.

Consumers do so when sending back (code 36) has failed, and orderly ones always.
"""

from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.retry.rules import DEAD_LETTER_QUEUES, give_up_sent, is_given_up, retry_limit
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import properties as names
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.names import RETRY_PREFIX, dead_letter_topic
from pocketmq.model.topic_config import TopicConfig


def origin_of(state: BrokerState, draft: Draft) -> str:
    """Give the topic a retry first came from; clients write it, so it must be one there is."""
    topic = draft.properties.get(names.RETRY_TOPIC, draft.topic)
    return topic if topic in state.topics else draft.topic


def find_group(state: BrokerState, name: str) -> GroupConfig:
    """Return the settings of a group whose message failed. Raises `ServerError` if unknown."""
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
    return group


def make_group_topic(
    state: BrokerState, name: str, queues: int, *, sys_flag: int = 0
) -> TopicConfig:
    """Return a group's topic of retries or dead letters, which may be new. Raises `ServerError`."""
    now_ms = state.turn.now_ms
    topic = state.topics.create_for_group(name, queues, sys_flag=sys_flag, now_ms=now_ms)
    if topic is None:
        raise server_error(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
    return topic


def give_up_retries(
    state: BrokerState, draft: Draft, client_version: int, client_limit: int | None
) -> None:
    """Point a draft for a retry topic at the dead letters if it has been tried often enough.

    So does a group that holds queue locks: it consumes in order, and has tried long enough before
    it sends anything here. Raises `ServerError` for an unknown group.
    """
    group = draft.topic.removeprefix(RETRY_PREFIX)
    limit = retry_limit(find_group(state, group), client_version, client_limit)
    tries = draft.reconsume_times - 1  # the consumer has counted the one that failed
    if not is_given_up(tries, limit) and state.locks.all_free(group, state.steady()):
        return
    make_group_topic(state, dead_letter_topic(group), DEAD_LETTER_QUEUES)
    save_changes(state)
    state.stats.count(state.stats.dead, origin_of(state, draft), group)
    give_up_sent(draft, group)
