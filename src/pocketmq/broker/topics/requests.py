"""Topics as tools manage them: make or change (17, 18), delete (215), show (21, 305, 351)."""

import msgspec

from pocketmq import errors
from pocketmq.broker.core.names import topic_fault
from pocketmq.broker.saving import save_changes, submit_offsets
from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.broker.topics.attributes import parse_changes
from pocketmq.broker.topics.table import MAX_QUEUES
from pocketmq.errors import ResponseCode
from pocketmq.model import DataVersion, MappedTopicConfig, TopicConfig, TopicFilterType
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.names import SYSTEM_TOPICS
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.requests import topics

PAGE = 2000
"""Entries of one page at most, as in Java."""

_DONE = "not set any response code"
"""What Java says after making a topic, with success."""
_OPTIONAL = {"order": "false", "defaultTopic": ""}
"""Fields of a request to make a topic that Java can do without."""


def create(state: BrokerState, _: Connection, request: Command) -> Command:
    """Make a topic, or replace how it is set up."""
    wanted = read_config(request)
    try:
        changes = parse_changes(request.ext.get("attributes") or "")
    except errors.AttributeRefused as refused:
        fault = topic_fault(wanted.topic_name)  # Java checks the name first
        if fault is not None:
            return request.reply(ResponseCode.INVALID_PARAMETER, fault)
        return request.reply(ResponseCode.SYSTEM_ERROR, refused.reason)
    return _create(state, request, [msgspec.structs.replace(wanted, attributes=changes)])


def read_config(request: Command) -> TopicConfig:
    """Return what a request wants of a topic, without attributes. Raises `HeaderMalformed`."""
    header = topics.CreateTopicRequest.from_ext(_OPTIONAL | request.ext)
    try:
        filter_type = TopicFilterType[header.topic_filter_type]
    except KeyError:
        raise errors.HeaderMalformed(
            f"topicFilterType = [{header.topic_filter_type[:80]}] value invalid"
        ) from None
    return TopicConfig(
        topic_name=header.topic,
        read_queue_nums=header.read_queue_nums,
        write_queue_nums=header.write_queue_nums,
        perm=header.perm,
        topic_filter_type=filter_type,
        topic_sys_flag=header.topic_sys_flag or 0,
        order=header.order,
    )


def create_several(state: BrokerState, _: Connection, request: Command) -> Command:
    """Make or replace topics, unless one of them cannot be.

    Java makes none of them if one is as it was already; here the others are made.
    """
    return _create(state, request, decode_body(request.body, topics.TopicConfigs).topic_config_list)


def _create(state: BrokerState, request: Command, wanted: list[TopicConfig]) -> Command:
    for config in wanted:
        fault = topic_refusal(state, config)
        if fault is not None:
            return request.reply(ResponseCode.INVALID_PARAMETER, fault)
    try:
        for config in wanted:
            if state.topics.full and config.topic_name not in state.topics:
                remark = "this broker has as many topics as it can have"
                return request.reply(ResponseCode.SYSTEM_ERROR, remark)
            state.topics.update(config, state.clock.now_ms())
    except errors.AttributeUnsupported as refused:  # as Java refuses message.type=MIXED
        return request.reply(ResponseCode.INVALID_PARAMETER, refused.reason)
    except errors.AttributeRefused as refused:
        return request.reply(ResponseCode.SYSTEM_ERROR, refused.reason)
    finally:
        save_changes(state)
    return request.reply(ResponseCode.SUCCESS, _DONE)


def topic_refusal(state: BrokerState, config: TopicConfig) -> str | None:
    """Return why a topic cannot be created or changed like this; None if it can."""
    name = config.topic_name
    fault = topic_fault(name)
    if fault is not None:
        return fault
    if state.topics.is_system(name):
        return f"The topic[{name}] is conflict with system topic."
    if config.attributes.get("+message.type") == "MIXED":
        return "MIXED message type is not supported."
    if not all(0 <= n <= MAX_QUEUES for n in (config.read_queue_nums, config.write_queue_nums)):
        return f"The topic[{name}] can have 0 to {MAX_QUEUES} queues."
    return None


def delete(state: BrokerState, _: Connection, request: Command) -> Command:
    """Delete a topic here with its messages and offsets; one that is not there is deleted, too."""
    topic = request.ext.get("topic") or ""
    if not topic.strip():
        return request.reply(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    if state.topics.is_system(topic):
        remark = f"The topic[{topic}] is conflict with system topic."
        return request.reply(ResponseCode.INVALID_PARAMETER, remark)
    for name in (topic, *_pop_retry_topics(state, topic)):
        state.store.delete_topic(name)  # first: if that fails, everything is as it was
        state.topics.remove(name, state.clock.now_ms())
        state.mappings.remove(name, state.clock.now_ms())
        state.offsets.remove_topic(name)
        if state.pops is not None:
            state.pops.forget(topic=name)
        state.stats.forget_topic(name)
    save_changes(state)
    submit_offsets(state)  # now: a topic of that name begins at 0, also after a crash
    return request.reply(ResponseCode.SUCCESS)


def _pop_retry_topics(state: BrokerState, topic: str) -> list[str]:
    """Return the topics that bring messages of this one back to groups that pop it."""
    names = [
        mark.real_topic(topic, group)
        for group in state.offsets.groups_of(topic)
        for mark in (TopicMark.RETRY, TopicMark.RETRY_V2)
    ]
    return [name for name in names if name in state.topics]


def get(
    state: BrokerState, _: Connection, request: Command, header: topics.GetTopicConfigRequest
) -> Command:
    """Return how a topic is set up."""
    topic = header.topic
    config = state.topics.get(topic)
    if config is None:
        remark = f"No topic in this broker. topic: {topic}"
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, remark)
    detail = state.mappings.get(topic) if header.lo else None
    if detail is not None:
        config = MappedTopicConfig(**msgspec.structs.asdict(config), mapping_detail=detail)
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(config))


def get_all(
    state: BrokerState, _: Connection, request: Command, header: topics.GetAllTopicConfigRequest
) -> Command:
    """Return how all topics are set up, or a page of them if the caller says where to begin."""
    table = state.topics
    entries = table.entries
    if (header.topic_seq, header.data_version, header.max_topic_num) != (None, None, None):
        count = PAGE if header.max_topic_num is None else min(PAGE, header.max_topic_num)
        version = known_version(header.data_version)
        entries = table.page(header.topic_seq or 0, count, version)
    body = topics.TopicTableBody(
        topic_config_table=entries,
        data_version=table.version,
        mapping_data_version=state.mappings.version if state.mappings else DataVersion(),
        topic_queue_mapping_detail_map={
            name: state.mappings.entries[name]
            for name in (entries if state.mappings else ())
            if name in state.mappings
        },
        topic_queue_mapping_info_map={},
    )
    total = topics.GetAllTopicConfigResponse(total_topic_num=len(table))
    return request.reply(ResponseCode.SUCCESS, None, total, encode_body(body))


def get_system(state: BrokerState, _: Connection, request: Command) -> Command:
    """List RocketMQ's own topics and those this broker made for itself."""
    names = topics.TopicNames(
        topic_list=java_sorted(tuple(SYSTEM_TOPICS | state.topics.system_names))
    )
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(names))


def known_version(text: str | None) -> DataVersion | None:
    """Read the version a caller says it has; None if it says none, or nothing that can be read."""
    if not text:
        return None
    try:
        return decode_body(text, DataVersion)
    except errors.BodyMalformed:
        return None


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: create,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: create_several,
    RequestCode.DELETE_TOPIC_IN_BROKER: delete,
    RequestCode.GET_TOPIC_CONFIG: get,
    RequestCode.GET_ALL_TOPIC_CONFIG: get_all,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: get_system,
}
