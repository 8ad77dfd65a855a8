"""A message whose fields the core holds is like one that has them itself, whatever one does."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq import native
from pocketmq.model import SysFlag
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.compression import Codec, compress, mark_compressed
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.pulled import InnerMessage, decode_pulled
from pocketmq.protocol.pulled_message import PulledMessage, deliver
from pocketmq.protocol.received import KEPT_BODY, WholeMessage
from pocketmq.protocol.record_scan import RecordFields
from pocketmq.protocol.records import Record, encode_record
from tests.native.both import alone, core, outcome, same
from tests.native.test_pulled import longs
from tests.protocol.golden_messages import V1

if native.core is None:
    pytest.skip("the pure path runs", allow_module_level=True)

ATTRIBUTES = sorted(
    name
    for cls in (RecordFields, ReceivedMessage, WholeMessage)
    for name in vars(cls)
    if name[0] != "_" and not callable(getattr(cls, name))
)
texts = st.lists(
    st.sampled_from([b"TAGS", b"KEYS", b"UNIQ_KEY", b"\1", b"\2", b"k", b"\xff", b"\xc3\xa4"]),
    max_size=12,
).map(b"".join)
bodies = st.binary(max_size=30) | st.sampled_from(
    [bytes(1024), bytes(1025), compress(b"text" * 9), compress(bytes(KEPT_BODY + 1))]
)
records = st.builds(
    Record,
    topic=st.sampled_from([b"", b"T", b"t" * 127, b"\xff"]),
    body=bodies,
    property_bytes=texts,
    queue_id=st.integers(-(2**31), 2**31 - 1),
    flag=st.integers(-(2**31), 2**31 - 1),
    sys_flag=st.sampled_from([0, 0, 4, 8, 1, 1, 0x501]),
    born_timestamp_ms=longs,
    queue_offset=longs,
    commit_log_offset=longs,
    store_timestamp_ms=longs,
    reconsume_times=st.integers(0, 99),
    prepared_transaction_offset=longs,
    born_host=st.binary(min_size=8, max_size=8),
).map(encode_record)
deliveries = st.builds(
    DeliveryContext,
    st.sampled_from(["", "broker-a"]),
    queue_id=st.sampled_from([None, 7]),
    topic=st.sampled_from([None, "orders"]),
    added=st.dictionaries(st.sampled_from(["TAGS", "k", "MIN_OFFSET"]), st.just("v")),
    inflate_limit=st.sampled_from([10, KEPT_BODY * 2]),
    reconsume_times=st.sampled_from([None, 3]),
)


def both(raw: bytes, delivery: DeliveryContext) -> tuple[ReceivedMessage, ReceivedMessage]:
    """Return the second message of a pull, as either path makes it."""
    pure, fast = (
        make(V1 + raw + V1, delivery)[0][1]
        for make in (native.pure["plain_messages"], core.plain_messages)
    )
    assert (type(pure), type(fast)) == (WholeMessage, PulledMessage)
    return pure, fast


def agree(action: Callable[[ReceivedMessage], Any], *messages: ReceivedMessage) -> None:
    first, second = (outcome(action, message) for message in messages)
    assert first == second


@settings(max_examples=150, deadline=None)
@given(records, deliveries, st.data())
def test_all_that_is_read_is_the_same_in_any_order(
    raw: bytes, delivery: DeliveryContext, data: st.DataObject
) -> None:
    messages = both(raw, delivery)
    for name in data.draw(st.permutations(ATTRIBUTES)):
        for _ in "twice":
            agree(lambda each, name=name: getattr(each, name), *messages)  # type: ignore[misc]
    for action in (
        repr,
        hash,
        copy.copy,
        copy.deepcopy,
        ReceivedMessage.record,
        ReceivedMessage.crc_matches,
        ReceivedMessage.tags_code,
        lambda each: each.body_start(5),
        lambda each: each.inflated_body(KEPT_BODY * 2),
        lambda each: each.with_topic("other"),
        lambda each: each.with_topic("other").topic,
        lambda each: each.with_reconsume_times(9).reconsume_times,
        lambda each: each.with_reconsume_times(9).properties,
        pickle.dumps,
        lambda each: pickle.loads(pickle.dumps(each)),
    ):
        agree(action, *messages)
    pure, fast = messages
    assert pure == fast
    assert fast == pure == pickle.loads(pickle.dumps(fast)) == copy.copy(fast)
    assert not fast != pure  # noqa: SIM202 - the operator
    assert fast != fast.with_topic("other")


@given(records, st.sampled_from(["TAGS", "KEYS", "k", "", "ä", "none", "\ud800", "MIN_OFFSET"]))
def test_one_property_is_the_same_before_and_after_all_were_read(raw: bytes, name: str) -> None:
    messages = both(raw, DeliveryContext(added={"MIN_OFFSET": "5", "k": ""}))
    agree(lambda each: each.get_property(name), *messages)
    agree(lambda each: each.properties, *messages)
    agree(lambda each: each.get_property(name), *messages)


@given(texts, st.sampled_from([b"TAGS", b"k", b"", b"\xff"]))
def test_properties_are_found_where_they_are(text: bytes, name: bytes) -> None:
    (message,) = core.plain_messages(
        encode_record(Record(topic=b"T", body=b"", property_bytes=text)), DeliveryContext()
    )[0]
    found = find_property(text, name)
    wanted = None if found is None else found.decode("utf-8", "replace")
    if name != b"\xff":
        assert message.get_property(name.decode()) == wanted


@pytest.mark.parametrize("name", ["queue_offset", "body", "_at", "_run", "delivery", "new"])
def test_a_message_cannot_be_changed(name: str) -> None:
    for message in both(V1, DeliveryContext()):
        with pytest.raises(AttributeError):
            setattr(message, name, 1)
        with pytest.raises(AttributeError):
            delattr(message, name)


def test_messages_that_wait_are_not_visited_by_the_garbage_collector() -> None:
    messages = core.plain_messages(V1 * 2000, DeliveryContext())[0]
    assert not any(map(gc.is_tracked, messages))
    assert max(map(sys.getsizeof, messages)) < 64


def test_a_large_body_is_copied_once_and_a_huge_inflated_one_is_not_kept() -> None:
    for pure, kept in (
        (bytes(1025), True),
        (bytes(KEPT_BODY), True),
        (bytes(KEPT_BODY + 1), False),
    ):
        packed = Record(topic=b"T", body=compress(pure), sys_flag=mark_compressed(0, Codec.ZLIB))
        for record in (packed, Record(topic=b"T", body=pure)):
            for message in both(encode_record(record), DeliveryContext()):
                assert message.body == pure
                if kept:
                    assert message.body is message.body
                elif record is packed:
                    assert message.body is not message.body


@given(st.lists(st.integers(-(2**63), 2**63 - 100), max_size=5))
def test_offsets_and_bytes(offsets: list[int]) -> None:
    raw = b"".join(
        encode_record(Record(topic=b"T", body=bytes(offset % 9), queue_offset=offset))
        for offset in [*offsets, *range(10, 13)]
    )
    messages = core.plain_messages(raw, DeliveryContext())[0]
    parts: list[list[ReceivedMessage]] = [
        messages,
        messages[::2],
        messages[len(offsets) :],
        messages[::-1],
        [],
    ]
    for some in parts:
        for name in ("offsets_and_bytes", "body_bytes"):
            alone(name, some)
            same(name, some)
    for odd in ([*messages, messages[0].with_topic("x")], tuple(messages), [None], None):
        same("offsets_and_bytes", odd)
        same("body_bytes", odd)


def test_offsets_of_many_messages_and_of_several_pulls() -> None:
    raw = [encode_record(Record(topic=b"T", body=b"x", queue_offset=at)) for at in range(3000)]
    pulls = [core.plain_messages(b"".join(raw[a:b]), DeliveryContext())[0]
             for a, b in ((0, 1500), (1500, 1503), (1503, 3000))]  # fmt: skip
    messages = [message for pull in pulls for message in pull]
    assert alone("offsets_and_bytes", messages) == (range(3000), 3000)
    assert [message.queue_offset for message in messages] == list(range(3000))


def test_offsets_at_the_edge_and_beyond_64_bits() -> None:
    raw = encode_record(Record(topic=b"T", body=b"", queue_offset=2**63 - 1))
    (edge,), _ = core.plain_messages(raw, DeliveryContext())
    same("offsets_and_bytes", [edge])
    (beyond,), _ = core.plain_messages(raw, DeliveryContext(offset_delta=1))
    assert beyond.queue_offset == 2**63
    same("offsets_and_bytes", [beyond])


def test_another_delivery_is_laid_over_a_new_message_of_any_kind() -> None:
    other = DeliveryContext("other", topic="renamed", added={"k": "new"})
    for message in both(V1, DeliveryContext("broker-a", added={"k": "old"})):
        assert message.properties["k"] == "old"
        laid = deliver(message, other)
        assert type(laid) is WholeMessage
        assert (laid.topic, laid.properties["k"], laid.body) == ("renamed", "new", b"hello")


def test_a_class_can_be_derived_from_it() -> None:
    class Mine(ReceivedMessage, frozen=True, gc=False, eq=False):
        @property
        def doubled(self) -> int:
            return 2 * self.queue_offset

    class Own(WholeMessage, frozen=True, gc=False, eq=False):
        @property
        def doubled(self) -> int:
            return 2 * self.queue_offset

    found = Own(V1, 0, 21, len(V1), 5, len(V1), DeliveryContext())
    assert (found.doubled, found.with_topic("x").topic) == (42, "x")
    assert issubclass(Mine, ReceivedMessage)
    assert issubclass(InnerMessage, ReceivedMessage)


def test_threads_may_read_one_message_at_once() -> None:
    packed = compress(b"text " * 1000)
    record = Record(topic=b"T", body=packed, sys_flag=int(SysFlag.COMPRESSED))
    messages = core.plain_messages(encode_record(record) * 300, DeliveryContext())[0]

    def read(_: int) -> list[tuple[bytes, str, int]]:
        return [(each.body, each.topic, len(each.properties)) for each in messages]

    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(read, range(8)):
            assert result == [(b"text " * 1000, "T", 0)] * 300


READ = "import pickle, sys; print(repr(pickle.loads(bytes.fromhex(sys.argv[1]))))"
WRITE = """
import pickle
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.pulled import decode_pulled
from tests.protocol.golden_messages import V1
print(pickle.dumps(decode_pulled(V1, DeliveryContext("broker-a"))[0]).hex())
"""


@pytest.mark.parametrize(("writer", "reader"), [("", "1"), ("1", "")])
def test_a_message_that_one_path_pickled_is_read_by_the_other(writer: str, reader: str) -> None:
    def run(pure: str, *args: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", *args],
            env=os.environ | {"POCKETMQ_PURE": pure},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()

    (message,) = decode_pulled(V1, DeliveryContext("broker-a"))
    assert run(reader, READ, run(writer, WRITE)) == repr(message)
