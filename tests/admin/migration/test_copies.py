"""What a message becomes in another cluster."""

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pocketmq import aio
from pocketmq.admin.migration.copies import Origin, digest, origin_of, requests_for
from pocketmq.model import SysFlag, property_names
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.batch import decode_batch
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record
from tests.admin.migration.test_migration import two

HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
MOVED = {
    property_names.UNIQUE_KEY: "id",
    property_names.TAGS: "paid",
    property_names.KEYS: "A17 B2",
    "region": "eu",
    property_names.DELAY_LEVEL: "3",
    property_names.REAL_TOPIC: "t",
    property_names.TIMER_DELIVER_MS: "99",
    property_names.TRANSACTION_PREPARED: "true",
    property_names.MSG_REGION: "DefaultRegion",
    property_names.TRACE_ON: "true",
}


def message(
    offset: int = 7,
    body: bytes = b"body",
    properties: Mapping[str, str] | None = None,
    *,
    topic: str = "t",
    sys_flag: int = 0,
    born_ms: int = 1000,
    tries: int = 0,
) -> ReceivedMessage:
    record = Record(
        topic=topic.encode(),
        body=body,
        property_bytes=encode_properties(properties or {property_names.UNIQUE_KEY: f"id{offset}"}),
        queue_id=3,
        flag=5,
        sys_flag=sys_flag,
        born_timestamp_ms=born_ms,
        born_host=HOST,
        store_host=HOST,
        queue_offset=offset,
        reconsume_times=tries,
    )
    (found,) = decode_pulled(
        encode_record(record), DeliveryContext(broker_name="broker/a", queue_id=3)
    )
    return found


def test_what_a_consumer_sees_stays_and_what_a_broker_would_do_again_does_not() -> None:
    (request,) = requests_for([message(properties=MOVED)], "t", "m1", 0)
    assert decode_properties(request.properties.encode()) == {
        property_names.UNIQUE_KEY: "id",
        property_names.TAGS: "paid",
        property_names.KEYS: "A17 B2",
        "region": "eu",
        "MIGRATED_FROM": "m1/broker/a/3/7/1000",
    }
    assert (request.body, request.flag, request.born_ms) == (b"body", 5, 1000)


def test_a_copy_knows_its_original() -> None:
    (request,) = requests_for([message()], "t", "m1", 0)
    copy = message(properties=decode_properties(request.properties.encode()))
    assert origin_of(copy) == Origin("m1", "broker/a", 3, 7)


def test_a_property_that_names_no_message_is_none() -> None:
    for text in ("", "m1", "m1/b/3", "m1/b/3/x/1", "/3/7/1", "m1/b/-3/7/1", "m1/b/3/7/²"):
        assert origin_of(message(properties={"MIGRATED_FROM": text or "-"})) is None, text


def test_messages_share_a_batch_and_each_keeps_its_own() -> None:
    page = [message(offset, b"%d" % offset) for offset in range(4, 7)]
    (request,) = requests_for(page, "t", "m1", 0)
    assert (request.first, request.count, request.is_batch) == (4, 3, True)
    entries = decode_batch(request.body)
    assert [(entry.body, entry.flag) for entry in entries] == [(b"4", 5), (b"5", 5), (b"6", 5)]
    ids = [decode_properties(entry.property_bytes)["MIGRATED_FROM"] for entry in entries]
    assert ids == ["m1/broker/a/3/4/1000", "m1/broker/a/3/5/1000", "m1/broker/a/3/6/1000"]


def counts(page: list[ReceivedMessage], topic: str = "t", within_ms: int = 0) -> list[int]:
    return [request.count for request in requests_for(page, topic, "m1", within_ms)]


def test_messages_born_apart_travel_apart() -> None:
    page = [message(offset, born_ms=1000 + 400 * offset) for offset in range(5)]
    assert counts(page) == [1, 1, 1, 1, 1]
    assert counts(page, within_ms=1000) == [3, 2]


def test_retries_compressed_and_tried_ones_go_alone() -> None:
    assert counts([message(1), message(2)], topic="%RETRY%g") == [1, 1]
    squeezed = message(2, sys_flag=int(SysFlag.COMPRESSED | SysFlag.ZLIB))
    assert counts([message(1), squeezed, message(3), message(4)]) == [1, 1, 2]
    assert counts([message(1), message(2, tries=1)]) == [1, 1]


def test_a_gap_ends_a_batch() -> None:
    assert counts([message(1), message(2), message(5), message(6)]) == [2, 2]


def test_batches_are_bounded() -> None:
    assert counts([message(offset) for offset in range(600)]) == [256, 256, 88]
    assert counts([message(offset, bytes(200 << 10)) for offset in range(5)]) == [2, 2, 1]


def test_a_compressed_body_stays_as_it_is() -> None:
    (request,) = requests_for(
        [message(sys_flag=int(SysFlag.COMPRESSED | SysFlag.ZLIB))], "t", "m", 0
    )
    assert request.sys_flag == int(SysFlag.COMPRESSED | SysFlag.ZLIB)
    assert request.body == b"body"


def test_a_message_without_an_id_keeps_the_one_it_was_known_by() -> None:
    nameless = message(properties={"a": "b"})
    (request,) = requests_for([nameless], "t", "m1", 0)
    kept = decode_properties(request.properties.encode())
    assert kept[property_names.UNIQUE_KEY] == nameless.offset_message_id


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\1\2"), min_size=1, max_size=8)


@given(st.dictionaries(TEXT, TEXT, max_size=5), st.binary(min_size=1, max_size=50))
def test_a_copy_has_the_digest_of_its_original_and_no_other_has(
    properties: dict[str, str], body: bytes
) -> None:
    own = {property_names.UNIQUE_KEY: "id", property_names.WAIT: "true"}
    original = message(body=body, properties=own | properties)
    (request,) = requests_for([original], "t", "m1", 0)
    carried = decode_properties(request.properties.encode())
    assert digest(message(9, request.body, carried)) == digest(original)
    unasked = {name: value for name, value in carried.items() if name != property_names.WAIT}
    assert digest(message(9, request.body, unasked)) == digest(original)
    assert digest(message(9, request.body + b"x", carried)) != digest(original)
    assert digest(message(9, request.body, carried | {"new": "one"})) != digest(original)


async def test_an_open_transaction_is_named_and_copied_when_it_is_committed(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        ending: list[object] = []

        async def decide(message: aio.Message, transaction: str) -> aio.TransactionState:
            ending.append((message, transaction))
            with move.ledger() as ledger:
                async with move.migration() as migration:
                    assert (await migration.outlook(ledger)).transactions == 1
                    assert (await migration.copy(ledger)).copied == 0
            return aio.TransactionState.COMMIT

        def committed(message: object) -> aio.TransactionState:
            raise AssertionError(f"nobody asks so soon about {message}")

        async with aio.Producer(move.source.address, group="p", check=committed) as producer:
            await producer.send_in_transaction(aio.Message("orders", b"paid"), decide)
        assert len(ending) == 1
        assert await move.copy() == 1
        assert [m.body for m in (await move.stored(move.target, "orders"))[0]] == [b"paid"]
