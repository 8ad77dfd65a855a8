"""What an application hands to a producer is checked first; receipts by response code and fields."""

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.errors import InvalidInput
from pocketmq.model.delay import DELAY_LEVELS, parse_delay_levels, retry_level
from pocketmq.model.kinds import Permission, PullFlag, SysFlag, TransactionState
from pocketmq.model.message import Message, SendReceipt, SendStatus, send_status
from pocketmq.model.queue import MessageQueue


def test_tag_and_keys_travel_as_properties() -> None:
    message = Message("orders", b"42", tag="paid", keys=["A17", "B2"], properties={"region": "eu"})
    assert message.wire_properties() == {
        "region": "eu",
        "KEYS": "A17 B2",
        "WAIT": "true",
        "TAGS": "paid",
    }


@pytest.mark.parametrize("priority", [0, 7, 2**31 - 1])
def test_a_priority_travels_as_a_property(priority: int) -> None:
    wire = Message("orders", b"42", priority=priority).wire_properties()
    assert wire == {"WAIT": "true", "_SYS_MSG_PRIORITY_": str(priority)}


def test_a_bare_message_says_only_that_it_waits_for_the_store() -> None:
    assert Message("orders", b"").wire_properties() == {"WAIT": "true"}


@pytest.mark.parametrize(
    "change",
    [
        lambda shared: operator.setitem(shared, "region", "eu"),
        lambda shared: shared.__ior__({"region": "eu"}),
        lambda shared: shared.setdefault("region", "eu"),
        lambda shared: shared.update(region="eu"),
    ],
)
def test_messages_without_properties_share_a_dict_that_cannot_be_changed(
    change: Callable[[Any], object],
) -> None:
    shared = Message("orders", b"42").properties
    assert shared is Message("orders", b"43").properties
    with pytest.raises(TypeError, match="cannot be changed; pass them to Message"):
        change(shared)
    assert shared == {}


def test_a_copy_of_a_message_without_properties_is_like_it() -> None:
    message = Message("orders", b"42")
    for twin in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert twin == message
        assert type(twin.properties) is dict


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"body": "42"}, r"a message body must be bytes, not str; use text.encode\(\)"),
        ({"body": None}, "a message body must be bytes, not NoneType"),
        ({"keys": "A17"}, "keys must be a sequence"),
        ({"keys": [17]}, "key 17 must be a string"),
        ({"properties": {"x": 1}}, "property 'x' must be a string, not 1"),
        ({"keys": ["A 17"]}, "white space"),
        ({"keys": [""]}, "must not be empty"),
        ({"properties": {"TAGS": "x"}}, "reserved by RocketMQ"),
        ({"properties": {"UNIQ_KEY": "x"}}, "reserved by RocketMQ"),
        ({"properties": {"_SYS_MSG_PRIORITY_": "1"}}, "reserved by RocketMQ"),
        ({"properties": {"__LITE_TOPIC": "x"}}, "reserved by RocketMQ"),
        ({"priority": -1}, "a priority must be a whole number from 0 to 2147483647, not -1"),
        (
            {"priority": 2**31},
            "a priority must be a whole number from 0 to 2147483647, not 2147483648",
        ),
        ({"priority": True}, "a priority must be a whole number"),
        ({"priority": "1"}, "a priority must be a whole number"),
        ({"properties": {" ": "x"}}, "must not be blank"),
        ({"properties": {"x": ""}}, "must not be blank"),
        ({"properties": {"x": "a\x02b"}}, "separator"),
        ({"properties": {"x\x01": "a"}}, "separator"),
    ],
)
def test_what_cannot_travel_is_refused_at_once(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Message("orders", **{"body": b"42", **arguments})  # type: ignore[arg-type]


def test_delay_levels_are_rocketmqs() -> None:
    text = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    assert parse_delay_levels(text) == DELAY_LEVELS
    assert retry_level(0) == 3


def test_flags_have_the_wires_values() -> None:
    assert SysFlag.COMPRESSED | SysFlag.ZLIB == 769
    assert PullFlag.SUSPEND | PullFlag.SUBSCRIPTION | PullFlag.LITE_PULL == 22
    assert PullFlag.COMMIT_OFFSET | PullFlag.SUSPEND == 3
    assert [state.value for state in TransactionState] == [0, 4, 8, 12]
    assert Permission(6).text() == "RW-"
    assert Permission(7).text() == "RWX"
    assert Permission(4).readable()
    assert not Permission(4).writable()


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
