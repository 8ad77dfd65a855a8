"""Pull requests: the one place that writes their fields, and one pull that does not wait.

`PullTemplate` is for consumers that pull a queue again and again, `pull_once` for readers that keep
their own offsets.
"""

from typing import NamedTuple

from msgspec import Struct

from pocketmq.balance.consumer.pulling import CommitWithPull, PullStatus
from pocketmq.client.questions.asking import Question, ask
from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue, PullFlag
from pocketmq.model.topics import is_logical
from pocketmq.protocol import Command
from pocketmq.protocol.repeated import RepeatedRequest
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
NO_COMMIT = CommitWithPull(False, 0)
_COMMIT = int(PullFlag.COMMIT_OFFSET)


class PullSpec(Struct, frozen=True):
    """What to pull, and in whose name."""

    group: str
    count: int
    size: int | None = None
    """Bytes at most, for brokers that know the field."""
    expression: str | None = "*"
    expression_type: str | None = None
    version: int = 0
    """The subscription's version: brokers of 4.9 compare it with that of the group's members."""
    flags: PullFlag = PullFlag.SUBSCRIPTION
    suspend: float = 0.0
    """Seconds for which a broker may hold a pull that finds nothing."""
    names_broker: bool = True
    """Whether the request carries the broker's name, which clients of 4.x do not send."""


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


def pull_header(queue: MessageQueue, offset: int, wanted: PullSpec) -> PullRequest:
    """Return the fields of a pull."""
    return PullRequest(
        consumer_group=wanted.group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=wanted.count,
        sys_flag=int(wanted.flags),
        commit_offset=0,
        suspend_timeout_millis=round(wanted.suspend * 1000),
        subscription=wanted.expression,
        sub_version=wanted.version,
        expression_type=wanted.expression_type,
        max_msg_bytes=wanted.size,
        bname=queue.broker_name if wanted.names_broker else None,
    )


class PullNumbers(NamedTuple):
    """What differs from one pull of a queue to the next, in the order in which headers have it."""

    offset: int
    most: int
    flags: int
    commit: int


_NUMBERS = ("queueOffset", "maxMsgNums", "sysFlag", "commitOffset")
"""The fields for `PullNumbers`."""


class PullTemplate:
    """The pull requests of one queue; what does not change from one to the next is encoded once."""

    __slots__ = ("_commit", "_count", "_fields", "_flags", "_many", "_written")

    def __init__(
        self, queue: MessageQueue, wanted: PullSpec, catch_up_size: int | None = None
    ) -> None:
        self._count = wanted.count
        self._flags = int(wanted.flags)
        # Java's brokers would store the logical offset as one of the physical queue.
        self._commit = 0 if is_logical(queue) else _COMMIT
        self._fields = self._many = pull_header(queue, 0, wanted).to_ext()
        if catch_up_size is not None:
            # A broker of ours sends more messages than usual to a client that asks for more bytes.
            self._many = self._fields | {"maxMsgBytes": str(catch_up_size)}
        self._written: dict[tuple[int, bool], RepeatedRequest] = {}

    def numbers(self, offset: int, count: int, commit: CommitWithPull = NO_COMMIT) -> PullNumbers:
        """Return what one pull of at most `count` messages from an offset on asks for."""
        flags = self._flags | self._commit if commit.enabled else self._flags
        return PullNumbers(offset, count, flags, commit.offset)

    def fields(self, numbers: PullNumbers) -> dict[str, str]:
        """Return the fields of one pull."""
        chosen = self._many if numbers.most > self._count else self._fields
        return chosen | dict(zip(_NUMBERS, map(str, numbers), strict=True))

    def frame(self, code: int, numbers: PullNumbers, opaque: int) -> bytes:
        """Return the whole request of one pull, for a client that adds nothing to its fields."""
        key = code, numbers.most > self._count
        written = self._written.get(key)
        if written is None:
            made = Command.request(code, 0, self.fields(numbers))
            written = self._written[key] = RepeatedRequest(made, _NUMBERS)
        return written.frame(opaque, *numbers)


def pull_once(
    queue: MessageQueue,
    offset: int,
    wanted: PullSpec,
    *,
    newest: bool = False,
    timeout: float | None = None,
) -> Question[PulledRecords]:
    """Ask for records of a queue from an offset on; brokers send as many as they see fit."""
    answer = yield from ask(
        queue,
        PULL_MESSAGE,
        pull_header(queue, offset, wanted),
        accept=ANSWERS,
        timeout=timeout,
        newest=newest,
    )
    header = answer.header()
    return PulledRecords(
        STATUS[answer.code],
        answer.result() if answer.code == ResponseCode.SUCCESS else b"",
        header.next_begin_offset,
        header.min_offset,
        header.max_offset,
        header.offset_delta or 0,
        header.suggest_which_broker_id,
    )
