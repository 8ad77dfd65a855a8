"""Retries that a consumer sends itself: to its retry topic, or after too many to the dead letters.

Consumers do so when sending back (code 36) has failed, and orderly ones always.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.appending import Draft
from pocketmq.broker.saving import save_changes
from pocketmq.broker.targets import MORE_HELP
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import properties as names
from pocketmq.model.names import RETRY_PREFIX, dead_letter_topic
from pocketmq.protocol.peers import Gate

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState


def origin_of(state: "BrokerState", draft: Draft) -> str:
    """Give the topic a retry first came from; clients write it, so it must be one there is."""
    topic = draft.properties.get(names.RETRY_TOPIC, draft.topic)
    return topic if topic in state.topics else draft.topic


def give_up_retries(
    state: "BrokerState", draft: Draft, client_version: int, client_limit: int | None
) -> None:
    """Point a draft for a retry topic at the dead letters if it has been tried often enough.

    So does a group that holds queue locks: it consumes in order, and has tried long enough before
    it sends anything here. Raises `ServerError` for an unknown group.
    """
    group = draft.topic.removeprefix(RETRY_PREFIX)
    config = state.groups.find(
        group,
        auto_create=state.config.auto_create_subscription_group,
        now_ms=state.turn.now_ms,
    )
    if config is None:
        raise server_error(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {group} {MORE_HELP}",
        )
    limit = config.retry_max_times
    if client_version >= Gate.MAX_RECONSUME_TIMES and client_limit is not None:
        limit = client_limit
    if draft.reconsume_times <= limit and state.locks.all_free(group, state.steady()):
        return
    topic = dead_letter_topic(group)
    if state.topics.create_for_group(topic, 1, now_ms=state.turn.now_ms) is None:
        raise server_error(ResponseCode.SYSTEM_ERROR, f"topic[{topic}] not exist")
    save_changes(state)
    state.stats.count(state.stats.dead, origin_of(state, draft), group)
    draft.topic = topic
    draft.queue_id = 0
    draft.properties[names.DELAY_LEVEL] = "-1"  # as in Java: not delayed, and one can see why
