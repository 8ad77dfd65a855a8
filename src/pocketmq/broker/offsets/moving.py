"""Moving groups: reset to a time or an offset (222), clone (314), compare (308).

A reset is carried out by the broker, at the next pull of each queue, or by the group's clients if
the broker is configured so (`useServerSideResetOffset`), as 4.x always does.
"""

from collections.abc import Mapping

from pocketmq.broker.core.refusals import too_old
from pocketmq.broker.offsets.progress import subscribed_topics
from pocketmq.broker.pulling.requests import resume
from pocketmq.broker.saving import submit_offsets
from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.broker.topics.table import MAX_QUEUES
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import MessageQueue
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.peers import Language, VersionGate
from pocketmq.protocol.requests import offsets

_LONGEST = 2**63 - 1


def reset(state: BrokerState, _: Connection, request: Command) -> Command:
    """Move a group to another place in a topic; answer with its new offset in each queue."""
    header = offsets.ResetOffsetRequest.from_ext({"isForce": "false"} | request.ext)
    if state.config.use_server_side_reset_offset:
        targets = _reset_here(state, header)
    else:
        targets = _reset_by_clients(state, header, listed=request.language is Language.CPP)
    broker = state.config.broker_name
    table = {MessageQueue(header.topic, broker, number): at for number, at in targets.items()}
    return request.reply(
        ResponseCode.SUCCESS, body=encode_body(offsets.ResetOffset(offset_table=table))
    )


def _reset_here(state: BrokerState, header: offsets.ResetOffsetRequest) -> dict[int, int]:
    topic, group = header.topic, header.group
    config = state.topics.get(topic)
    if config is None:
        raise server_error(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
    if group not in state.groups:
        remark = f"Group {group} does not exist"
        raise server_error(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if header.queue_id >= MAX_QUEUES:
        remark = f"QueueId {header.queue_id} is illegal, topic is {topic}"
        raise server_error(ResponseCode.INVALID_PARAMETER, remark)
    if header.queue_id < 0:
        numbers = range(config.read_queue_nums)
        targets = {number: _by_time(state, topic, number, header.timestamp) for number in numbers}
    elif header.offset is None or header.offset == -1:
        number = header.queue_id
        targets = {number: _by_time(state, topic, number, header.timestamp)}
    else:
        targets = {header.queue_id: _checked_offset(state, header, header.offset)}
    if not targets:
        raise server_error(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    for number, target in targets.items():
        state.offsets.reset(group, topic, number, target)
    submit_offsets(state)
    _wake(state, topic, targets)
    return targets


def _checked_offset(state: BrokerState, header: offsets.ResetOffsetRequest, wanted: int) -> int:
    queue = state.store.queue(header.topic, header.queue_id)
    low, high = (0, 0) if queue is None else (queue.min_offset, queue.next_offset)
    if not low <= wanted <= high + 1:
        remark = f"Target offset {wanted} not in consume queue range [{low}-{high}]"
        raise server_error(ResponseCode.SYSTEM_ERROR, remark)
    return wanted


def _by_time(state: BrokerState, topic: str, number: int, moment_ms: int) -> int:
    queue = state.store.queue(topic, number)
    if queue is None:
        return 0
    return queue.next_offset if moment_ms < 0 else state.store.offset_by_time(queue, moment_ms)


def _wake(state: BrokerState, topic: str, targets: Mapping[int, int]) -> None:
    """Answer suspended pulls, so that a reset takes effect now. Java's keep waiting."""
    for number in targets:
        queue = state.store.queue(topic, number)
        if queue is not None and queue.waiting:
            for pull in state.waiting.take_queue(queue):
                resume(state, pull)
                pull.connection.flush()


def _reset_by_clients(
    state: BrokerState, header: offsets.ResetOffsetRequest, *, listed: bool
) -> dict[int, int]:
    """Ask the group's clients to move; without `isForce` only backwards."""
    topic, group, moment_ms = header.topic, header.group, header.timestamp
    config = state.topics.get(topic)
    if config is None:
        remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
        raise server_error(ResponseCode.TOPIC_NOT_EXIST, remark)
    targets = {}
    for number in range(config.write_queue_nums):
        committed = state.offsets.query(group, topic, number)
        if committed is None:
            remark = f"THe consumer group <{group}> not exist"
            raise server_error(ResponseCode.SYSTEM_ERROR, remark)
        wanted = _by_time(state, topic, number, moment_ms)
        targets[number] = wanted if header.is_force else min(wanted, committed)
    members = state.consumers.get(group)
    if members is None:
        remark = (
            "Consumer not online, so can not reset offset, "
            f"Group: {group} Topic: {topic} Timestamp: {moment_ms}"
        )
        raise server_error(ResponseCode.CONSUMER_NOT_ONLINE, remark)
    for member in members.members.values():
        if member.client.version < VersionGate.RESET_OFFSET_PUSH:
            raise server_error(ResponseCode.SYSTEM_ERROR, too_old(member.client.version))
    broker = state.config.broker_name
    table = {MessageQueue(topic, broker, number): at for number, at in targets.items()}
    body = offsets.ResetOffset(offset_table=table)
    told = offsets.ResetOffsetRequest(topic=topic, group=group, timestamp=moment_ms, is_force=False)
    frame = Command.request(
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        0,
        told,
        encode_body(body.listed() if listed else body),
        oneway=True,
    ).encode()
    for client in members.members:
        client.write(frame)
    return targets


def clone(
    state: BrokerState, _: Connection, request: Command, header: offsets.CloneGroupOffsetRequest
) -> Command:
    """Copy the offsets of a group to another, in one topic or in all."""
    source, target = header.src_group, header.dest_group
    named = (header.topic or "").strip()
    topics = [header.topic or ""] if named else state.offsets.topics_of(source)
    if not header.offline:
        topics = subscribed_topics(state, source, topics)
    for topic in topics:
        if topic in state.topics:
            state.offsets.clone(source, target, topic)
    submit_offsets(state)
    return request.reply(ResponseCode.SUCCESS)


def correct(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: offsets.QueryCorrectionOffsetRequest,
) -> Command:
    """Return the lowest offsets of a topic's groups; the highest number where one group is lower.

    Java also deletes the offsets of the groups that are left out; here they stay.
    """
    topic, left_out = header.topic, set((header.filter_groups or "").split(","))
    lowest: dict[int, int] = {}
    for group in state.offsets.groups_of(topic):
        if group in left_out:
            continue
        for number, offset in state.offsets.offsets_of(group, topic).items():
            queue = state.store.queue(topic, number)
            if queue is None or offset >= queue.min_offset:
                lowest[number] = min(offset, lowest.get(number, _LONGEST))
    for number, offset in state.offsets.offsets_of(header.compare_group, topic).items():
        if lowest.get(number, 0) > offset:
            lowest[number] = _LONGEST
    body = encode_body(offsets.CorrectionOffsets(correction_offsets=lowest))
    return request.reply(ResponseCode.SUCCESS, body=body)


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: reset,
    RequestCode.CLONE_GROUP_OFFSET: clone,
    RequestCode.QUERY_CORRECTION_OFFSET: correct,
}
