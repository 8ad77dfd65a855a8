"""Received messages in the core: responses to gRPC clients as Python writes them, or none."""

import os
import time
from random import Random

import pytest

pytest.importorskip("google.protobuf")

from pocketmq.errors import MQError
from pocketmq.model import property_names as names
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record
from pocketmq.proxy.translation import incoming
from pocketmq.proxy.wire import service as s
from tests.native.both import core

SECONDS = float(os.environ.get("POCKETMQ_FUZZ_SECONDS", "1"))
OWN = core.GrpcDeliveries(incoming._NOT_OF_USERS, incoming._SPECIAL)
HIDDEN = 60.5
_NAMES = (
    *("user", "other", "ä", "", names.TAGS, names.KEYS, names.UNIQUE_KEY, names.BORN_HOST),
    *(names.TRACE_CONTEXT, names.PRODUCER_GROUP, "ORIGIN_GROUP", names.MSG_REGION),
)
_VALUES = ("x", "a b  c", "", "ä", "true", "1\x01", "7")
_HANDLES = (
    "0 1700000000000 60000 0 0 broker-a 3 5",
    "0 1700000000000 60000 0 0 broker-a 3",
    "00 1700000000000 60000 0 0 broker-a 3 5",
    "0 1700000000000 60000 0 7 broker-a 3 5",
    "0 1 2 3 1 b 4 5 6",
)


def text_of(random: Random) -> bytes:
    """Properties, mostly with an id; sometimes special ones, and text that is not UTF-8."""
    pairs = [(random.choice(_NAMES), random.choice(_VALUES)) for _ in range(random.randrange(5))]
    if random.random() < 0.8:
        pairs.insert(0, (names.UNIQUE_KEY, "01AB"))
    if random.random() < 0.1:
        pairs.append((random.choice(sorted(incoming._SPECIAL)), random.choice(_VALUES)))
    raw = "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()
    return raw + random.choice([b""] * 9 + [b"\xff\x01a"])


def record(random: Random) -> Record:
    times = [0, 1_700_000_000_123, 2**62, -5]
    return Record(
        topic=random.choice([b"orders"] * 6 + [b"%RETRY%g", b"ns%orders", b"\xc3\xa4", b"\xff"]),
        body=random.randbytes(random.choice([0, 1, 55, 56, 64, 300])),
        property_bytes=text_of(random),
        queue_id=random.choice([0, 3, -1]),
        sys_flag=random.choice([0] * 6 + [1]),
        born_timestamp_ms=random.choice(times),
        born_host=random.choice([bytes([10, 1, 2, 3, 0, 0, 1, 2])] * 4 + [bytes(20), b"\xff" * 8]),
        reconsume_times=random.choice([0, 2]),
        queue_offset=random.choice([0, 7, 2**50]),
        commit_log_offset=random.choice([0, 9_000]),
        store_timestamp_ms=random.choice(times),
        store_host=random.choice([bytes([10, 9, 8, 7, 0, 0, 42, 1])] * 4 + [bytes(20)]),
    )


def received(random: Random) -> list[ReceivedMessage]:
    added = {}
    if random.random() < 0.8:
        added[names.POP_CHECKPOINT] = random.choice(_HANDLES[:1] * 3 + _HANDLES)
    if random.random() < 0.1:
        added[random.choice(_NAMES)] = random.choice(_VALUES)
    delivery = DeliveryContext(
        broker_name="broker-a",
        queue_id=random.choice([None, 2]),
        topic=random.choice([None, None, "orders", "%RETRY%g"]),
        offset_delta=random.choice([0, 5]),
        added=added,
        reconsume_times=random.choice([None, 3]),
    )
    body = b"".join(encode_record(record(random)) for _ in range(random.randrange(4)))
    return decode_pulled(body, delivery)


def test_the_core_writes_what_python_writes_or_nothing() -> None:
    made = usual = seed = 0
    end = time.process_time() + SECONDS
    while time.process_time() < end or seed < 200:
        messages = received(Random(seed))
        responses = OWN.responses(messages, round(HIDDEN * 1000))
        assert len(responses) == len(messages)
        for message, response in zip(messages, responses, strict=True):
            made += 1
            if response is None:
                continue
            usual += 1
            found = s.ReceiveMessageResponse.FromString(response)
            expected = s.ReceiveMessageResponse.FromString(incoming._response(message, HIDDEN))
            assert found == expected, f"seed {seed}"
        seed += 1
    assert usual > made / 10


def test_a_handle_that_is_invalid_is_refused_in_python() -> None:
    stored = encode_record(Record(topic=b"orders", body=b"x", property_bytes=b"UNIQ_KEY\x01A\x02"))
    context = DeliveryContext(broker_name="a", added={names.POP_CHECKPOINT: "not a handle"})
    messages = decode_pulled(stored, context)
    assert OWN.responses(messages, 1000) == [None]
    with pytest.raises(MQError):
        list(incoming.received(messages, 1.0))


def test_large_messages_are_not_all_in_memory_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = encode_record(
        Record(topic=b"orders", body=bytes(100_000), property_bytes=b"UNIQ_KEY\x01A\x02")
    )
    messages = decode_pulled(stored * 10, DeliveryContext(broker_name="a"))
    asked = []

    class Watched:
        def responses(self, some: list[ReceivedMessage], hidden_ms: int) -> list[bytes | None]:
            asked.append(len(some))
            found: list[bytes | None] = OWN.responses(some, hidden_ms)
            return found

    monkeypatch.setattr(incoming, "_native", Watched())
    responses = incoming.received(messages, 1.0)
    next(responses)
    assert asked == [3]
    assert len(list(responses)) == 9
    assert asked == [3, 3, 3, 1]
