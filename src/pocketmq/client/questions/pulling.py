"""One pull that does not wait for messages, for readers that keep their own offsets."""

from msgspec import Struct

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.client.questions.asking import Question, ask
from pocketmq.errors import ResponseCode
from pocketmq.model.kinds import PullFlag
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.requests.reading import PULL_MESSAGE, PullRequest

PULL_TIMEOUT = 10.0
"""Seconds for a pull that does not wait for messages, as in Java."""

STATUS = {
    int(ResponseCode.SUCCESS): PullStatus.FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PullStatus.NO_NEW_MSG,
    int(ResponseCode.PULL_RETRY_IMMEDIATELY): PullStatus.NO_MATCHED_MSG,
    int(ResponseCode.PULL_OFFSET_MOVED): PullStatus.OFFSET_ILLEGAL,
}
ANSWERS = frozenset(STATUS)


class PullSpec(Struct, frozen=True):
    """What to pull, and in whose name."""

    group: str
    count: int
    size: int | None = None
    """Bytes at most, for brokers that know the field."""
    expression: str = "*"
    expression_type: str | None = None
    version: int = 0
    """The subscription's version: brokers of 4.9 compare it with that of the group's members."""


class PulledRecords(Struct, frozen=True):
    """What a pull brought."""

    status: PullStatus
    records: bytes
    """Stored records back to back, as they came."""
    next_offset: int
    min_offset: int
    max_offset: int
    offset_delta: int
    """Added to the queue offsets in `records` (5.x static topics)."""
    suggested_broker: int
    """The id of the broker to pull from next."""


def pull_once(
    queue: MessageQueue,
    offset: int,
    wanted: PullSpec,
    *,
    newest: bool = False,
    timeout: float | None = None,
) -> Question[PulledRecords]:
    """Ask for records of a queue from an offset on; brokers send as many as they see fit."""
    header = PullRequest(
        consumer_group=wanted.group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=wanted.count,
        sys_flag=int(PullFlag.SUBSCRIPTION),
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription=wanted.expression,
        sub_version=wanted.version,
        expression_type=wanted.expression_type,
        max_msg_bytes=wanted.size,
        bname=queue.broker_name,
    )
    answer = yield from ask(
        queue, PULL_MESSAGE, header, accept=ANSWERS, timeout=timeout, newest=newest
    )
    told = answer.header()
    return PulledRecords(
        STATUS[answer.code],
        answer.result() if answer.code == ResponseCode.SUCCESS else b"",
        told.next_begin_offset,
        told.min_offset,
        told.max_offset,
        told.offset_delta or 0,
        told.suggest_which_broker_id,
    )
