"""When a failed message is redelivered, when it becomes a dead letter, and what its copy carries.

The rules for all ways a message fails: a consumer sends it back or sends the retry itself
(`retry.requests`), or a popped message is not acknowledged (`pop`). Pure: the callers create the
topics and store the copies.
"""

import msgspec

from pocketmq.broker.writing.drafts import Draft
from pocketmq.model import GroupConfig, property_names
from pocketmq.model.delay import retry_level
from pocketmq.model.names import dead_letter_topic
from pocketmq.protocol import RecordView
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.protocol.peers import VersionGate
from pocketmq.protocol.property_text import decode_properties

DEAD_LETTER_QUEUES = 1
_MOST_TRIES = 2**31 - 1
_ORIGIN_GROUP = "ORIGIN_GROUP"
"""The property in which brokers of 5.5 name the consumer that failed."""


class PopOfFailed(msgspec.Struct, frozen=True):
    """The pop whose message was not acknowledged."""

    group: str
    topic: str
    """The topic the message was first popped from."""
    time_ms: int


def retries_exhausted(tries: int, limit: int) -> bool:
    """Return whether a message that failed after `tries` retries becomes a dead letter."""
    return tries >= limit


def level_of_retry(tries: int, limit: int, asked: int) -> int | None:
    """Return the delay level of a message's redelivery; None if it becomes a dead letter.

    `tries` counts those that failed before this one. The consumer may ask for a level, or for none
    with 0; a negative one makes it a dead letter.
    """
    if asked < 0 or retries_exhausted(tries, limit):
        return None
    return asked or retry_level(tries)


def retry_limit(
    group: GroupConfig, client_version: int = 0, client_limit: int | None = None
) -> int:
    """Return how often a group retries: the number its consumer sends, if it is new enough."""
    if client_limit is not None and client_version >= VersionGate.MAX_RECONSUME_TIMES:
        return client_limit
    return group.retry_max_times


def retry_of(failed: RecordView, level: int | None) -> Draft:
    """Build the copy of a failed message for redelivery, or for the dead letters without a level.

    Its topic is the one it first came from; the caller sends it elsewhere.
    """
    topic = failed.topic_bytes.decode("utf-8", "replace")
    properties = decode_properties(failed.property_bytes)
    properties.setdefault(property_names.RETRY_TOPIC, topic)
    properties[property_names.WAIT] = "false"
    properties[property_names.DELAY_LEVEL] = str(level or 0)
    if not properties.get(property_names.ORIGIN_MESSAGE_ID, "").strip():
        properties[property_names.ORIGIN_MESSAGE_ID] = encode_offset_id(
            failed.store_host_bytes, failed.commit_log_offset
        )
    return _one_more_try(failed, topic, properties)


def retry_of_popped(failed: RecordView, topic: str, pop: PopOfFailed, *, exhausted: bool) -> Draft:
    """Return the copy for `topic` of a message that was popped and not acknowledged."""
    properties = decode_properties(failed.property_bytes)
    if failed.reconsume_times == 0 or property_names.FIRST_POP_TIME not in properties:
        properties[property_names.FIRST_POP_TIME] = str(pop.time_ms)
    properties[_ORIGIN_GROUP] = pop.group
    if exhausted:  # shown to operators: where a dead letter is from
        properties.setdefault(property_names.RETRY_TOPIC, pop.topic)
    return _one_more_try(failed, topic, properties)


def redirect_to_dead_letters(draft: Draft, group: str) -> None:
    """Point a retry that a consumer sent itself at the dead letters of its group."""
    draft.topic = dead_letter_topic(group)
    draft.queue_id = 0
    draft.properties[property_names.DELAY_LEVEL] = (
        "-1"  # as in Java: not delayed, and one can see why
    )


def _one_more_try(failed: RecordView, topic: str, properties: dict[str, str]) -> Draft:
    return Draft(
        topic=topic,
        queue_id=0,
        body=failed.stored_body,
        properties=properties,
        flag=failed.flag,
        sys_flag=failed.sys_flag,
        born_timestamp_ms=failed.born_timestamp_ms,
        born_host=failed.born_host_bytes,
        reconsume_times=min(failed.reconsume_times + 1, _MOST_TRIES),
    )
