"""Where a send goes: the checks on topic and queue, made once and kept until topics change.

Owns Java's order of checks and its words. Independent of the message itself, but for its
priority (5.4), which is the number of a queue; pops of a topic whose type is PRIORITY read the
queues in that order (see `broker.pop.taking`). As in Java the topic's type does not matter
here: gRPC proxies check it before they send.
"""

import random

from pocketmq.broker.core.names import topic_fault
from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.drafts import SendTarget
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import Permission, SysFlag, TopicConfig, TopicFilterType, property_names
from pocketmq.model import names as topic_names
from pocketmq.model.kinds import TopicKind, kind_of
from pocketmq.protocol.header import read_int64
from pocketmq.protocol.inner_batch import is_queue_of_batches
from pocketmq.protocol.requests.sending import SendRequest

_UNIT = 1
_UNIT_SUB = 2
_KEPT = 65_536


def find_target(state: BrokerState, producer: str, header: SendRequest) -> SendTarget:
    """Return the queue of a send; its topic is created if that is allowed. Raises `ServerError`."""
    config = state.topics.get(header.topic)
    if config is not None and header.queue_id < 0 and config.write_queue_nums > 0:
        queue_id = random.randrange(config.write_queue_nums)  # noqa: S311 - which queue is no secret
        target = state.targets.get((header.topic, queue_id))
        if target is not None and target.version is state.topics.version:
            return target
    else:
        queue_id = header.queue_id
    config = _checked_topic(state, header)
    queue_id = _checked_queue(config, queue_id, producer)
    target = SendTarget(
        version=state.topics.version,
        config=config,
        queue=state.store.make_queue(header.topic, queue_id),
        topic=header.topic.encode(),
        sys_flag=int(SysFlag.MULTI_TAGS)
        if config.topic_filter_type is TopicFilterType.MULTI_TAG
        else 0,
        retry=topic_names.is_retry_topic(header.topic),
        batches=is_queue_of_batches(config.attributes),
    )
    if target.batches:
        return target  # not kept: the lane takes only what is kept, and knows no inner batches
    if header.topic in state.mappings.entries:
        return target  # not kept: who finds it there would take a logical queue for a physical one
    if len(state.targets) >= _KEPT:
        state.targets.clear()
    state.targets[header.topic, queue_id] = target
    return target


def _checked_topic(state: BrokerState, header: SendRequest) -> TopicConfig:
    topic = header.topic
    writable = state.config.broker_permission & Permission.WRITE
    if not writable and state.topics.is_order(topic):
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the broker[{state.address.rpartition(':')[0]}] sending message is forbidden",
        )
    fault = topic_fault(topic)
    if fault is not None:
        raise server_error(ResponseCode.INVALID_PARAMETER, fault)
    # Java fails on the latter two: timed messages, and the journal of pops.
    own = topic == topic_names.TIMER_TOPIC or topic.startswith(topic_names.REVIVE_TOPIC_PREFIX)
    if topic in topic_names.NOT_SENDABLE_TOPICS or own:
        raise server_error(
            ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden."
        )
    config = state.topics.get(topic) or _created(state, header)
    if config is None:
        raise server_error(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{topic}] not exist, apply first please!{MORE_HELP}",
        )
    return config


def _created(state: BrokerState, header: SendRequest) -> TopicConfig | None:
    retry = topic_names.is_retry_topic(header.topic)
    flag = (_UNIT_SUB if retry else _UNIT) if header.unit_mode else 0
    config = state.topics.create_on_send(
        header.topic,
        header.default_topic,
        header.default_topic_queue_nums,
        flag,
        auto_create=state.config.auto_create_topic_enable,
        now_ms=state.batch.now_ms,
    )
    if config is None and retry:
        config = state.topics.create_for_group(
            header.topic, 1, sys_flag=flag, now_ms=state.batch.now_ms
        )
    save_changes(state)
    return config


def _checked_queue(config: TopicConfig, queue_id: int, producer: str) -> int:
    if queue_id >= max(config.write_queue_nums, config.read_queue_nums):
        raise server_error(
            ResponseCode.INVALID_PARAMETER,
            f"request queueId[{queue_id}] is illegal, {_shown(config)} Producer: {producer}",
        )
    if queue_id >= 0:
        return queue_id
    if config.write_queue_nums <= 0:
        raise server_error(
            ResponseCode.INVALID_PARAMETER, f"no queue to write to, {_shown(config)}"
        )
    return random.randrange(config.write_queue_nums)  # noqa: S311 - which queue is no secret


def _shown(config: TopicConfig) -> str:
    """Write a topic's settings as Java prints them."""
    attributes = ", ".join(f"{key}={value}" for key, value in config.attributes.items())
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={Permission(config.perm).text()}, "
        f"topicFilterType={config.topic_filter_type.name}, topicSysFlag={config.topic_sys_flag}, "
        f"order={'true' if config.order else 'false'}, attributes={{{attributes}}}]"
    )


_INT32 = 2**31


def queue_of(config: TopicConfig, queue_id: int, properties: dict[str, str]) -> int:
    """Return a message's queue: that of its priority, or the one its sender chose.

    A message that is delayed, ordered or in a transaction loses its priority, as in Java.
    Raises `ServerError` if the topic has no queue to write to.
    """
    text = properties.get(property_names.PRIORITY)
    priority = None if text is None else read_int64(text)
    if priority is None or not 0 <= priority < _INT32:
        return queue_id  # stored as any other property
    if kind_of(properties) is not TopicKind.PRIORITY:
        del properties[property_names.PRIORITY]
        return queue_id
    if config.write_queue_nums <= 0:
        raise server_error(
            ResponseCode.INVALID_PARAMETER,
            f"the topic[{config.topic_name}] has no queue to write to",
        )
    return min(priority, config.write_queue_nums - 1)
