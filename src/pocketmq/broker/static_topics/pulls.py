"""Pulls of a logical queue (11, 361): from this broker, or from the one that holds the range."""

from pocketmq.balance.static_topics import ranges
from pocketmq.balance.static_topics.answers import Pulled
from pocketmq.broker.pulling.requests import pull as plain_pull
from pocketmq.broker.pulling.suspended_pulls import LogicalPull
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.static_topics.logical import LogicalHandler, LogicalQueue, rewritten
from pocketmq.broker.static_topics.offsets import store
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import PullFlag
from pocketmq.model.topics import MappedRange
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.reading import PullRequest, PullResponse

_ANSWERS = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


def pull(
    state: BrokerState, connection: Connection, request: Command, queue: LogicalQueue, _: Handler
) -> Answer:
    """Answer a pull from the range that has its offset; only the newest one lets it wait."""
    header = request.header(PullRequest)
    part = ranges.holding(queue.parts, header.queue_offset)
    if part is None:
        return request.reply(ResponseCode.SYSTEM_ERROR, "no range of this queue is decided")
    flags = header.sys_flag & ~int(PullFlag.COMMIT_OFFSET)
    if header.sys_flag & PullFlag.COMMIT_OFFSET and header.commit_offset >= 0:
        store(state, queue, header.consumer_group, header.commit_offset)
    if part is not queue.leader or not queue.is_here(part):
        flags &= ~int(PullFlag.SUSPEND)
    asked = ranges.physical(part, header.queue_offset)
    count = header.max_msg_nums
    if part.end_offset > part.start_offset:
        count = min(count, part.end_offset - part.start_offset)
    fields = {"queueId": part.queue_id, "queueOffset": asked, "maxMsgNums": count, "sysFlag": flags}
    there, logical = rewritten(request, fields), LogicalPull(queue.parts, part, asked)
    if queue.is_here(part):
        return plain_pull(state, connection, there, logical)
    work = _remote(state, request, there, logical, part)
    return state.neighbours.answer_later(connection, request, work)


async def _remote(
    state: BrokerState, request: Command, there: Command, logical: LogicalPull, part: MappedRange
) -> Command:
    topic, broker = there.ext["topic"], part.bname or ""
    answer = await state.neighbours.ask(topic, broker, RequestCode.PULL_MESSAGE, there.ext)
    if answer.code not in _ANSWERS:
        raise server_error(answer.code, answer.remark, request="PULL_MESSAGE", address=broker)
    header = answer.header(PullResponse)
    pulled = Pulled(answer.code, header.next_begin_offset, header.min_offset, header.max_offset)
    return logical.answer(request, pulled, answer.remark, answer.body, header)


LOGICAL: dict[RequestCode, LogicalHandler] = {
    RequestCode.PULL_MESSAGE: pull,
    RequestCode.LITE_PULL_MESSAGE: pull,
}
