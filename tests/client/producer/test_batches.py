"""Many messages as one request."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.client.clock import SystemClock
from pocketmq.client.producer.batches import prepare_batches
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import InvalidInput, SendFailed
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.batch import batch_entry, decode_batch, encode_batch, encode_messages
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.peers import VersionGate, version_number
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import refuses, stage, stores

messages = st.builds(
    Message,
    st.just("orders"),
    st.binary(min_size=1, max_size=60),
    tag=st.none() | st.sampled_from(["paid", "größe"]),
    keys=st.lists(st.sampled_from(["A17", "B2"]), max_size=2),
    properties=st.dictionaries(st.sampled_from(["a", "b"]), st.just("c"), max_size=2),
    flag=st.sampled_from([0, 0, 0, 7, -1]),
)


def preparing(namespace: str = "") -> Preparing:
    options = ProducerOptions(group="shop")
    return Preparing(options, namespace, UniqueIds(b"\x7f\0\0\1", 77, 5), SystemClock())


@settings(max_examples=40)
@given(st.lists(messages, min_size=1, max_size=20))
def test_the_quick_way_of_packing_gives_the_same_bytes(batch: list[Message]) -> None:
    ids = UniqueIds(b"\x7f\0\0\1", 77, 5).next_ids(1, len(batch))
    entries = [batch_entry(message, own) for message, own in zip(batch, ids, strict=True)]
    assert b"".join(encode_messages(batch, ids)) == encode_batch(entries)


def test_messages_with_priorities_are_no_batch() -> None:
    batch = [Message("orders", b"x"), Message("orders", b"y", priority=0)]
    with pytest.raises(InvalidInput, match="cannot have priorities; send them one by one"):
        prepare_batches(preparing(), batch, 4096, split=True)


@settings(max_examples=40)
@given(st.lists(messages, min_size=1, max_size=20), st.integers(250, 1000))
def test_parts_of_a_batch_hold_all_messages_in_order_and_are_as_few_as_possible(
    batch: list[Message], limit: int
) -> None:
    parts = prepare_batches(preparing(), batch, limit, split=True)
    assert [message for part in parts for message in part.messages] == batch
    sizes = [len(part.body) for part in parts]
    assert all(size <= limit for size in sizes)
    for size, following in zip(sizes, parts[1:], strict=False):
        first = decode_batch(following.body)[0]
        assert size + first.encoded_size() > limit
    for part in parts:
        bodies = [entry.body for entry in decode_batch(part.body)]
        assert bodies == [message.body for message in part.messages]
        ids = [decode_properties(e.property_bytes)["UNIQ_KEY"] for e in decode_batch(part.body)]
        assert part.unique_id == ",".join(ids)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([], "at least one message"),
        ([Message("orders", b"x"), Message("other", b"x")], "the same topic"),
        ([Message("orders", b"x"), Message("orders", b"")], "has no body"),
        ([Message("%RETRY%g", b"x")], "retry topic"),
        ([Message("or ders", b"x")], "invalid topic name"),
        ([Message("orders", b"x", flag=2**31)], "flag 2147483648"),
        ([Message("orders", b"x", flag=2**31, tag="t")], "flag of 2147483648"),
        ([Message("orders", b"x" * 500)] * 3, "over the limit of 1000"),
    ],
)
def test_what_cannot_be_a_batch_is_refused(batch: list[Message], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        prepare_batches(preparing(), batch, 1000, split=False)


@pytest.mark.parametrize("thing", [Message("orders", b"x"), [None], {1, 2}])
def test_what_is_no_list_of_messages_is_refused(thing: Any) -> None:
    with pytest.raises(InvalidInput, match="a batch must be a list of Message"):
        prepare_batches(preparing(), thing, 1000, split=False)


def test_one_message_over_the_limit_cannot_be_split() -> None:
    batch = [Message("orders", b"x"), Message("orders", b"x" * 2000)]
    with pytest.raises(InvalidInput, match="is over the limit of 1000"):
        prepare_batches(preparing(), batch, 1000, split=True)


def test_a_batch_has_an_id_and_a_namespace_of_its_own() -> None:
    (made,) = prepare_batches(preparing("prod"), [Message("orders", b"x")], 1000, split=False)
    assert made.topic == "prod%orders"
    assert decode_properties(made.properties.encode()) == {
        "UNIQ_KEY": made.batch_id,
        "WAIT": "true",
        "INSTANCE_ID": "prod",
    }


async def test_a_batch_is_one_request_to_one_queue() -> None:
    async with stage() as on:
        batch = [Message("orders", b"%d" % number) for number in range(5)]
        receipt = await on.producer.send_batch(batch)
        (sent,) = [request for each in on.brokers.values() for request in each.sends]
        assert (sent.code, sent.ext["m"]) == (320, "true")
        assert [entry.body for entry in decode_batch(sent.body)] == [m.body for m in batch]
        assert len(receipt.message_id.split(",")) == 5
        queue = MessageQueue("orders", "broker-b", 1)
        assert (await on.producer.send_batch(batch, queue=queue)).queue == queue
        keyed = await on.producer.send_batch(batch, ordering_key="k")
        assert keyed.queue == (await on.producer.send(batch[0], ordering_key="k")).queue


async def test_a_batch_to_a_broker_of_unknown_version_has_no_id_of_its_own() -> None:
    """A 4.x broker would give it to all messages, and it may be one until it has said otherwise."""
    async with stage({"broker-a": stores}) as on:
        broker = on.brokers["broker-a"]
        broker.script[RequestCode.HEART_BEAT] = refuses(1)
        batch = [Message("orders", b"%d" % number) for number in range(2)]
        await on.producer.send_batch(batch)
        addresses = on.producer.session.addresses
        addresses.note_version(addresses.master("broker-a"), VersionGate.TOPIC_QUEUE_MAPPING)
        await on.producer.send_batch(batch)
        ids = [
            decode_properties(sent.ext["i"].encode()).get("UNIQ_KEY") is not None
            for sent in broker.sends
        ]
        assert ids == [False, True]


async def test_the_first_batch_waits_for_the_brokers_versions() -> None:
    async with stage() as on:
        batch = [Message("orders", b"%d" % number) for number in range(2)]
        await on.producer.send_batch(batch)
        (sent,) = [request for each in on.brokers.values() for request in each.sends]
        assert "UNIQ_KEY" in decode_properties(sent.ext["i"].encode())


async def test_the_first_delay_is_not_lost_on_a_4x_broker() -> None:
    async with stage({"broker-a": stores}) as on:
        broker = on.brokers["broker-a"]

        def beats_as_4x(request: Command) -> Command:
            return msgspec.structs.replace(request.reply(0), version=version_number(4, 9, 7))

        broker.script[RequestCode.HEART_BEAT] = beats_as_4x
        with pytest.raises(InvalidInput, match=r"is on a 4\.x broker"):
            await on.producer.send(Message("orders", b"x"), delay=60)
        assert not broker.sends


async def test_a_split_batch_gives_a_receipt_for_each_part() -> None:
    async with stage(max_message_size=1000) as on:
        batch = [Message("orders", b"x" * 100) for _ in range(10)]
        with pytest.raises(InvalidInput, match="split=True"):
            await on.producer.send_batch(batch)
        receipts = await on.producer.send_batch(batch, split=True)
        counts = [len(receipt.message_id.split(",")) for receipt in receipts]
        assert counts == [5, 5]
        assert [len(r) for r in [await on.producer.send_batch(batch[:1], split=True)]] == [1]


async def test_a_part_that_fails_tells_which_parts_were_stored() -> None:
    async with stage(max_message_size=1000, retries=0) as on:
        count = 0

        def second_fails(request: Command) -> Command:
            nonlocal count
            count += 1
            return request.reply(13, "no") if count == 2 else stores(request)

        for each in on.brokers.values():
            each.say = second_fails
        batch = [Message("orders", b"x" * 100) for _ in range(15)]
        with pytest.raises(SendFailed) as caught:
            await on.producer.send_batch(batch, split=True)
        (first,) = caught.value.receipts
        assert len(first.message_id.split(",")) == 5
        assert count == 2
