"""Handing messages out: pulls (11) and lite pulls (361), with Java's checks, codes and words (5.x).

A pull that finds nothing may wait; what wakes it calls `resume`, which goes through all checks
again, as in Java: the topic or the group may be gone by then.
"""

from typing import NamedTuple

from pocketmq.balance.static_topics.answers import Pulled
from pocketmq.broker.core.answers import pull_answer
from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.groups.requests import group_named
from pocketmq.broker.pulling.selection import Selection, carried_selection, group_selection
from pocketmq.broker.pulling.suspended_pulls import LogicalPull, SuspendedPull
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.errors import ResponseCode, ServerError, server_error
from pocketmq.model import GroupConfig, Permission, PullFlag, TopicConfig
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.reading import PullRequest, PullResponse
from pocketmq.store import QueueIndex, QueueRead, ReadStatus

_LONGEST_WAIT = 3600.0

_CODES = {
    ReadStatus.FOUND: ResponseCode.SUCCESS,
    ReadStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.NO_MATCHED_LOGIC_QUEUE: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    ReadStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    ReadStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
_EMPTY = (ReadStatus.NO_MESSAGE_IN_QUEUE, ReadStatus.NO_MATCHED_LOGIC_QUEUE)

# Plain numbers: an operator of a flag is a call of several microseconds.
_SUSPEND, _SUBSCRIPTION = int(PullFlag.SUSPEND), int(PullFlag.SUBSCRIPTION)
_COMMIT, _READ = int(PullFlag.COMMIT_OFFSET), int(Permission.READ)


class _Checked(NamedTuple):
    """A pull that may be served."""

    topic: TopicConfig
    group: GroupConfig
    selection: Selection
    queue: QueueIndex


def pull(
    state: BrokerState,
    connection: Connection,
    request: Command,
    logical: LogicalPull | None = None,
) -> Answer:
    """Answer a pull, or suspend it; of a logical queue it names the physical one."""
    header = request.header(PullRequest)
    checked = _check(state, connection, request, header)
    read = _read(state, connection, header, checked)
    _commit(state, header, read)
    code = _code(read, header)
    may_wait = code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & _SUSPEND
    if not may_wait or not _hold(state, connection, request, header, checked, logical):
        _answer(state, connection, request, checked, code, read, logical)
    return None


def resume(state: BrokerState, held: SuspendedPull) -> None:
    """Answer a suspended pull with what there is now."""
    connection, request, header = held.connection, held.request, held.header
    try:
        checked = _check(state, connection, request, header)
    except ServerError as error:
        connection.write(request.reply(error.code, error.remark).encode())
        return
    read = _read(state, connection, header, checked)
    state.offsets.record_pull(
        header.consumer_group, header.topic, header.queue_id, read.next_offset
    )
    _answer(state, connection, request, checked, _code(read, header), read, held.logical)


def has_match(state: BrokerState, held: SuspendedPull) -> bool:
    """Return whether messages that came since the last check match a suspended pull."""
    try:
        selection = _select(state, held.header)
    except ServerError:
        return True  # it is to be refused
    read = state.store.read(held.queue, held.checked, 1, 1, matches=selection.matches)
    return read.status is ReadStatus.FOUND


def _check(
    state: BrokerState, connection: Connection, request: Command, header: PullRequest
) -> _Checked:
    """Check in Java's order; raises `ServerError`."""
    config = state.config
    if not config.broker_permission & _READ:
        raise _forbidden(f"the broker[{_host(state)}] pulling message is forbidden")
    if request.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull_message_enable:
        raise _forbidden(f"the broker[{_host(state)}] for lite pull consumer is forbidden")
    group = group_named(state, header.consumer_group)
    if not group.consume_enable:
        raise _forbidden(f"subscription group no permission, {header.consumer_group}")
    topic = state.topics.get(header.topic)
    if topic is None:
        raise server_error(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{header.topic}] not exist, apply first please! {MORE_HELP}",
        )
    if not topic.perm & _READ:
        raise _forbidden(f"the topic[{header.topic}] pulling message is forbidden")
    if not 0 <= header.queue_id < topic.read_queue_nums:
        raise server_error(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
            f"topicConfig.readQueueNums:[{topic.read_queue_nums}] "
            f"consumer:[/{connection.remote_address}]",
        )
    selection = _select(state, header)
    if not selection.by_tag and not config.enable_property_filter:
        raise server_error(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {selection.kind}",
        )
    return _Checked(topic, group, selection, state.store.make_queue(header.topic, header.queue_id))


def _select(state: BrokerState, header: PullRequest) -> Selection:
    if header.sys_flag & _SUBSCRIPTION:
        return carried_selection(header.topic, header.subscription, header.expression_type)
    return group_selection(state, header)


def _read(
    state: BrokerState, connection: Connection, header: PullRequest, checked: _Checked
) -> QueueRead:
    config, queue = state.config, checked.queue
    if config.use_server_side_reset_offset:
        target = state.offsets.take_reset(header.consumer_group, header.topic, header.queue_id)
        if target is not None:
            return QueueRead(ReadStatus.OFFSET_RESET, target, queue.min_offset, queue.next_offset)
    count = config.max_transfer_count_on_message_in_memory
    size = config.max_transfer_bytes_on_message_in_memory
    asked = header.max_msg_bytes
    if asked is not None and asked > size and not connection.pressed:
        # Java answers no more than usual; here a client gets what it asks for explicitly.
        count = config.max_transfer_count_on_request
        size = min(asked, config.max_transfer_bytes_on_request)
    count = min(count, max(header.max_msg_nums, 1))
    wanted = checked.selection
    return state.store.read(
        queue,
        header.queue_offset,
        count,
        size,
        matches=wanted.matches,
        tags=wanted.codes,
        joined=True,
    )


def _code(read: QueueRead, header: PullRequest) -> int:
    if read.status in _EMPTY and header.queue_offset != 0:
        return ResponseCode.PULL_OFFSET_MOVED
    return _CODES[read.status]


def _commit(state: BrokerState, header: PullRequest, read: QueueRead) -> None:
    group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
    state.offsets.record_pull(group, topic, queue_id, read.next_offset)
    if header.sys_flag & _COMMIT and header.commit_offset >= 0:
        state.offsets.commit(group, topic, queue_id, header.commit_offset)


def _hold(  # noqa: PLR0917 - what a suspended pull consists of
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: PullRequest,
    checked: _Checked,
    logical: LogicalPull | None,
) -> bool:
    wait_ms = header.suspend_timeout_millis
    if not state.config.long_polling_enable:
        wait_ms = state.config.short_polling_time_mills
    if wait_ms <= 0 or connection.closed:
        return False
    selection = checked.selection
    held = SuspendedPull(
        connection, request, header, checked.queue, selection.codes, sql=not selection.by_tag
    )
    held.logical = logical
    return state.waiting.hold(held, min(wait_ms / 1000, _LONGEST_WAIT), state.steady())


def _answer(  # noqa: PLR0917 - one step of the two ways to an answer
    state: BrokerState,
    connection: Connection,
    request: Command,
    checked: _Checked,
    code: int,
    read: QueueRead,
    logical: LogicalPull | None,
) -> None:
    if logical is not None:
        _answer_logical(state, connection, request, checked, code, read, logical)
        return
    head = pull_answer(
        request,
        code,
        read.status.value,
        read.next_offset,
        read.min_offset,
        read.max_offset,
        topic_flag=checked.topic.topic_sys_flag,
        group_flag=checked.group.group_sys_flag,
        body_size=read.size,
    )
    connection.write(head, *read.pieces)
    _count(state, checked, read)
    if state.measures is not None:
        state.measures.answered(request.code, code, state.steady())


def _answer_logical(  # noqa: PLR0917 - as above
    state: BrokerState,
    connection: Connection,
    request: Command,
    checked: _Checked,
    code: int,
    read: QueueRead,
    logical: LogicalPull,
) -> None:
    pulled = Pulled(int(code), read.next_offset, read.min_offset, read.max_offset)
    flags = PullResponse(
        suggest_which_broker_id=0,
        next_begin_offset=0,
        min_offset=0,
        max_offset=0,
        topic_sys_flag=checked.topic.topic_sys_flag,
        group_sys_flag=checked.group.group_sys_flag,
    )
    body = b"".join(read.pieces)
    answer = logical.answer(request, pulled, read.status.value, body, flags)
    _count(state, checked, read)
    connection.write(answer.encode())
    if state.measures is not None:
        state.measures.answered(request.code, answer.code, state.steady())


def _count(state: BrokerState, checked: _Checked, read: QueueRead) -> None:
    if read.count:
        state.traffic.pulls_found += 1
        state.traffic.messages_out += read.count
        queue = checked.queue
        state.stats.were_given(queue.topic, checked.group.group_name, read.count, read.size)
    else:
        state.traffic.pulls_missed += 1


def _host(state: BrokerState) -> str:
    return state.address.rpartition(":")[0]


def _forbidden(remark: str) -> ServerError:
    return server_error(ResponseCode.NO_PERMISSION, remark)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.PULL_MESSAGE: pull,
    RequestCode.LITE_PULL_MESSAGE: pull,
}
