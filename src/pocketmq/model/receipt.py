"""What a broker says about a message it took: status and receipt."""

from collections.abc import Mapping
from enum import Enum

import msgspec

from pocketmq.errors import ResponseCode
from pocketmq.model import properties as names
from pocketmq.model.queue import MessageQueue

DEFAULT_REGION = "DefaultRegion"


class SendStatus(Enum):
    """How safely a message was stored. All four mean that the broker has it."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_BY_CODE: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


def send_status(code: int) -> SendStatus | None:
    """Read the response code of a send; None means the broker refused the message."""
    return _BY_CODE.get(code)


class SendReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that a broker took a message (Java: SendResult).

    `message_id` is the id the producer gave (several, separated by commas, for a batch);
    `offset_message_id` is the broker's own, which tells where the message lies.
    """

    status: SendStatus
    message_id: str
    offset_message_id: str | None
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    region_id: str = DEFAULT_REGION
    trace_on: bool = True

    @property
    def ok(self) -> bool:
        """Whether the message is stored as safely as the broker is configured to."""
        return self.status is SendStatus.SEND_OK


def region_and_trace(reply_fields: Mapping[str, str]) -> tuple[str, bool]:
    """Read a send reply's region and whether traces are wanted; only the word `false` says no."""
    region = reply_fields.get(names.MSG_REGION) or DEFAULT_REGION
    return region, reply_fields.get(names.TRACE_ON) != "false"
