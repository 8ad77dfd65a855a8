"""Progress of groups: in messages (208, 317), in time (303); subscriptions (300, 343, 345)."""

import time

from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.requests import groups as rows
from pocketmq.protocol.requests import reading, stats
from pocketmq.protocol.requests.topics import GroupNames, QueryTopicConsumersRequest, TopicNames


def group_progress(
    state: BrokerState, _: Connection, request: Command, header: stats.GetConsumeStatsRequest
) -> Command:
    """Return how far a group is in its topics, in one, or in some that the caller lists."""
    group = header.consumer_group
    listed = [topic for topic in (header.topic_list or "").split(";") if topic]
    if listed:
        topics = list(dict.fromkeys(listed))
    else:
        named = (header.topic or "").strip()
        topics = subscribed_topics(state, group, [header.topic or ""] if named else None)
    table: dict[MessageQueue, stats.QueueProgress] = {}
    rate = 0.0
    for topic in topics:
        config = state.topics.get(topic)
        if config is not None:
            table |= queue_progress(state, group, topic, config.read_queue_nums)
            rate += state.stats.given_rate(topic, group)
    body = stats.ConsumeStatsBody(offset_table=table, consume_tps=rate)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


def subscribed_topics(state: BrokerState, group: str, topics: list[str] | None = None) -> list[str]:
    """Return the topics of which a group has committed something, without those it has left.

    A group without members has left none; `topics` narrows the choice.
    """
    chosen = state.offsets.topics_of(group) if topics is None else topics
    members = state.consumers.get(group)
    if members is None or not members.subscriptions:
        return chosen
    return [topic for topic in chosen if topic in members.subscriptions]


def queue_progress(
    state: BrokerState, group: str, topic: str, queues: int
) -> dict[MessageQueue, stats.QueueProgress]:
    """Return how far a group is in each queue of a topic; where it never was counts as 0."""
    broker, store, offsets = state.config.broker_name, state.store, state.offsets
    # Tools take the newest range of a logical queue that has an offset at all (Java: double read).
    none = -1 if topic in state.mappings else 0
    table = {}
    for number in range(queues):
        queue = store.queue(topic, number)
        known = offsets.query(group, topic, number)
        committed = none if known is None else max(known, none)
        consumed_ms = 0 if queue is None else store.store_time(queue, committed - 1)
        table[MessageQueue(topic, broker, number)] = stats.QueueProgress(
            broker_offset=0 if queue is None else queue.next_offset,
            consumer_offset=committed,
            pull_offset=max(committed, offsets.query_pull(group, topic, number) or 0),
            last_timestamp=max(consumed_ms, 0),
        )
    return table


def all_progress(
    state: BrokerState, _: Connection, request: Command, header: stats.GetBrokerConsumeStatsRequest
) -> Command:
    """Return how far every group is in every topic it has committed something of."""
    only_order = header.is_order
    by_group: dict[str, list[stats.ConsumeStatsBody]] = {
        group: [] for group in state.groups.entries
    }
    for topic, group in state.offsets.committed:
        config = state.topics.get(topic)
        if group not in by_group or config is None or (only_order and not config.order):
            continue
        if subscribed_topics(state, group, [topic]):
            table = queue_progress(state, group, topic, config.write_queue_nums)
            rate = state.stats.given_rate(topic, group)
            by_group[group].append(stats.ConsumeStatsBody(offset_table=table, consume_tps=rate))
    everything = [each for listed in by_group.values() for each in listed]
    body = stats.BrokerConsumeStats(
        broker_addr=state.address,
        consume_stats_list=[{group: listed} for group, listed in by_group.items()],
        total_diff=sum(each.lag() for each in everything),
        total_inflight_diff=sum(each.in_flight() for each in everything),
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


def time_spans(
    state: BrokerState, _: Connection, request: Command, header: reading.QueryConsumeTimeSpanRequest
) -> Command:
    """Answer with the time span of each queue's messages, and a group's delay in it."""
    config = state.topics.get(header.topic)
    if config is None:
        remark = f"topic[{header.topic}] not exist"
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, remark)
    spans = [
        _time_span(state, header.topic, header.group, number)
        for number in range(config.write_queue_nums)
    ]
    body = encode_body(stats.TimeSpans(consume_time_span_set=spans))
    return request.reply(ResponseCode.SUCCESS, body=body)


def _time_span(state: BrokerState, topic: str, group: str, number: int) -> stats.QueueTimeSpan:
    store, queue = state.store, state.store.queue(topic, number)
    name = MessageQueue(topic, state.config.broker_name, number)
    earliest = latest = consumed = -1
    delay = 0
    if queue is not None and queue.next_offset:
        committed = state.offsets.query(group, topic, number) or 0
        earliest = consumed = store.earliest_time(queue)
        latest = store.store_time(queue, queue.next_offset - 1)
        if committed > 0:
            consumed = store.store_time(queue, committed - 1)
        if committed < queue.next_offset:
            # A group without an offset has everything ahead of it; Java counts from 1970 then.
            waiting = store.store_time(queue, max(committed, queue.min_offset))
            delay = state.clock.now_ms() - waiting if waiting >= 0 else 0
    return stats.QueueTimeSpan(
        message_queue=name,
        min_time_stamp=earliest,
        max_time_stamp=latest,
        consume_time_stamp=consumed,
        delay_time=delay,
        min_time_stamp_str=_shown(earliest),
        max_time_stamp_str=_shown(latest),
        consume_time_stamp_str=_shown(consumed),
    )


def _shown(moment_ms: int) -> str:
    seconds, milliseconds = divmod(moment_ms, 1000)
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    return f"{shown},{milliseconds:03d}"


def consumers_of_topic(
    state: BrokerState, _: Connection, request: Command, header: QueryTopicConsumersRequest
) -> Command:
    """List the groups that subscribe a topic, or have committed something of it."""
    topic = header.topic
    groups = dict.fromkeys(state.consumers.groups_subscribing(topic))
    groups |= dict.fromkeys(state.offsets.groups_of(topic))
    body = encode_body(GroupNames(group_list=list(groups)))
    return request.reply(ResponseCode.SUCCESS, body=body)


def topics_of_group(
    state: BrokerState, _: Connection, request: Command, header: rows.QueryTopicsByConsumerRequest
) -> Command:
    """List the topics of which a group has committed something."""
    group = header.group
    topics = TopicNames(topic_list=state.offsets.topics_of(group), broker_addr=state.address)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(topics))


def subscription(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: rows.QuerySubscriptionByConsumerRequest,
) -> Command:
    """Return what a group with members subscribes of a topic, if anything."""
    known = state.consumers.subscription(header.group, header.topic or "")
    body = rows.GroupSubscription(
        group=header.group,
        topic=header.topic,
        subscription_data=None if known is None else known.subscription,
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.GET_CONSUME_STATS: group_progress,
    RequestCode.GET_BROKER_CONSUME_STATS: all_progress,
    RequestCode.QUERY_CONSUME_TIME_SPAN: time_spans,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: consumers_of_topic,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: subscription,
}
