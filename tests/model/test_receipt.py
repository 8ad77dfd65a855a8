"""Receipts: the status of a send by its response code, and the fields of its reply."""

import pytest

from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt, SendStatus, region_and_trace, send_status


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, SendStatus.SEND_OK),
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
        (1, None),
        (13, None),
        (-1, None),
    ],
)
def test_four_response_codes_mean_that_the_message_is_stored(
    code: int, status: SendStatus | None
) -> None:
    assert send_status(code) is status


@pytest.mark.parametrize("status", list(SendStatus))
def test_only_send_ok_is_as_safe_as_wanted(status: SendStatus) -> None:
    receipt = SendReceipt(
        status=status,
        message_id="A",
        offset_message_id=None,
        queue=MessageQueue("T", "b", 0),
        queue_offset=1,
    )
    assert receipt.ok == (status is SendStatus.SEND_OK)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("DefaultRegion", True)),
        ({"MSG_REGION": "", "TRACE_ON": ""}, ("DefaultRegion", True)),
        ({"MSG_REGION": "eu", "TRACE_ON": "true"}, ("eu", True)),
        ({"MSG_REGION": "eu", "TRACE_ON": "false"}, ("eu", False)),
        ({"TRACE_ON": "False"}, ("DefaultRegion", True)),
    ],
)
def test_traces_are_wanted_unless_the_reply_says_false(
    fields: dict[str, str], expected: tuple[str, bool]
) -> None:
    assert region_and_trace(fields) == expected
