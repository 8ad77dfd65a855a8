"""Whole pops in the core: the responses to gRPC clients are those of Python, or there are none."""

import os
import time
from random import Random

import pytest

pytest.importorskip("google.protobuf")

from pocketmq.client.pop.popped import read_popped
from pocketmq.model import property_names as names
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests.pop import PopResponse
from pocketmq.proxy.translation import incoming
from pocketmq.proxy.translation.incoming import PopFor, popped_stream
from pocketmq.proxy.translation.refusals import OK
from pocketmq.proxy.wire import service as s
from tests.native.both import core
from tests.native.fuzzed import damaged

SECONDS = float(os.environ.get("POCKETMQ_FUZZ_SECONDS", "1"))
BROKER, TOPIC, HIDDEN_MS, MOST, NOW_MS = "broker-a", "orders", 60_500, 3, 1_800_000_000_123
TOPICS = (b"orders", b"%RETRY%g_orders", b"%RETRY%g+orders")


def record(queue_id: int = 0, offset: int = 5, **fields: object) -> bytes:
    """A stored message; `tag` and other fields of `Record` may be given."""
    tag = fields.pop("tag", "t")
    text = f"UNIQ_KEY\x01A{offset}\x02TAGS\x01{tag}\x02user\x01x\x02"
    given = {"topic": b"orders", "body": b"body", "property_bytes": text.encode()} | fields
    return encode_record(Record(queue_id=queue_id, queue_offset=offset, **given))  # type: ignore[arg-type]


def answer(body: bytes, starts: str, offsets: str, **fields: object) -> Command:
    given = {"invisible_time": HIDDEN_MS, "revive_qid": 0, "rest_num": 0} | fields
    header = PopResponse(
        pop_time=1_700_000_000_000,
        start_offset_info=starts,
        msg_offset_info=offsets,
        **given,  # type: ignore[arg-type]
    )
    return Command.request(0, 1, header, body)


def stream_of(given: Command, *tags: str) -> list[s.ReceiveMessageResponse] | None:
    """Return the responses of the core."""
    raw = popped_stream(given, PopFor(BROKER, TOPIC, HIDDEN_MS, MOST, frozenset(tags)), NOW_MS)
    if raw is None:
        return None
    found = []
    while raw:
        assert raw[0] == 0
        end = 5 + int.from_bytes(raw[1:5], "big")
        found.append(s.ReceiveMessageResponse.FromString(raw[5:end]))
        raw = raw[end:]
    return found


def messages_of(given: Command) -> list[ReceivedMessage]:
    read = read_popped(given.header(PopResponse), bytes(given.body), BROKER, TOPIC)
    assert not read.damaged
    return read.messages


def expected(messages: list[ReceivedMessage]) -> list[s.ReceiveMessageResponse]:
    """Return the responses of Python."""
    made = [s.ReceiveMessageResponse(status=OK)]
    for each in messages:
        raw = incoming._response(each, HIDDEN_MS / 1000)
        made.append(s.ReceiveMessageResponse.FromString(raw))
    made.append(s.ReceiveMessageResponse())
    made[-1].delivery_timestamp.FromMilliseconds(NOW_MS)
    return made


def test_messages_of_several_queues_and_retries_come_with_their_own_handles() -> None:
    body = record(3, 7) + record(3, 9) + record(1, 2) + record(0, 4, topic=TOPICS[2])
    given = answer(body, "0 3 7;0 1 2;2 0 4", "0 3 7,9;0 1 2;2 0 4")
    found = stream_of(given)
    assert found == expected(messages_of(given))
    handles = [each.message.system_properties.receipt_handle for each in found[1:-1]]
    assert [each.split()[0] + " " + " ".join(each.split()[4:8]) for each in handles] == [
        "7 0 broker-a 3 7", "7 0 broker-a 3 9", "2 0 broker-a 1 2", "4 2 broker-a 0 4",
    ]  # fmt: skip


def test_what_is_not_for_the_client_is_left_to_python() -> None:
    assert stream_of(answer(record(), "0 0 5", "0 0 5"), "t", "u") is not None
    assert stream_of(answer(record(tag="v"), "0 0 5", "0 0 5"), "t", "u") is None
    assert stream_of(answer(record(reconsume_times=MOST - 1), "0 0 5", "0 0 5")) is not None
    assert stream_of(answer(record(reconsume_times=MOST), "0 0 5", "0 0 5")) is None


@pytest.mark.parametrize(
    ("starts", "offsets"),
    [
        ("", ""),
        ("0 0 5", ""),
        ("0 0 5", "0 0 5,6"),  # one message is missing
        ("0 1 5", "0 1 5"),  # the message is of another queue
        ("1 0 5", "1 0 5"),  # and of another topic
        ("0 0 5;0 0 5", "0 0 5;0 0 6"),
        ("0 0 5;0 1 5", "0 0 5"),
        ("0 0 5", "0 0 5;0 1 5"),
        ("0 0 5", "0 0 x"),
        ("x", "0 0 5"),
    ],
)
def test_a_pop_that_does_not_say_where_messages_are_from_is_left_to_python(
    starts: str, offsets: str
) -> None:
    assert stream_of(answer(record(), starts, offsets)) is None


def test_large_pops_and_ordered_ones_are_left_to_python() -> None:
    large = record(body=bytes(31_000))
    assert stream_of(answer(large, "0 0 5", "0 0 5")) is not None
    assert stream_of(answer(large + large, "0 0 5", "0 0 5,6")) is None
    ordered = answer(record(), "0 0 5", "0 0 5", order_count_info="0 0 1")
    assert stream_of(ordered) is None


def random_pop(random: Random) -> Command:
    queues = random.sample(range(4), random.randrange(1, 4))
    body, starts, offsets = b"", [], []
    for queue_id in queues:
        topic = random.choice(TOPICS)
        mark = TOPICS.index(topic)
        own = sorted(random.sample(range(50), random.randrange(1, 4)))
        for offset in own:
            more = {names.FIRST_POP_TIME.encode() + b"\x015\x02": 0.05, b"\xff\x01x": 0.05}
            text = b"UNIQ_KEY\x01A\x02TAGS\x01t\x02"
            text += b"".join(each for each, chance in more.items() if random.random() < chance)
            body += record(
                queue_id, offset, topic=topic, property_bytes=text,
                body=random.randbytes(random.choice([0, 1, 300])),
                reconsume_times=random.choice([0, 0, 2, 4]),
            )  # fmt: skip
        starts.append(f"{mark} {queue_id} {own[0]}")
        offsets.append(f"{mark} {queue_id} {','.join(map(str, own))}")
    if random.random() < 0.2:
        body = damaged(random, body)
    if random.random() < 0.1:
        random.shuffle(starts)
    return answer(body, ";".join(starts), ";".join(offsets))


def test_the_core_makes_the_responses_of_python_or_none() -> None:
    made = usual = seed = 0
    end = time.process_time() + SECONDS
    while time.process_time() < end or seed < 300:
        given = random_pop(Random(seed))
        made += 1
        found = stream_of(given, "t")
        if found is not None:
            usual += 1
            messages = messages_of(given)
            assert found == expected(messages), f"seed {seed}"
            assert all(each.reconsume_times < MOST and each.tag == "t" for each in messages)
        seed += 1
    assert usual > made / 10


def test_arguments_of_other_types_are_refused() -> None:
    own = core.GrpcDeliveries(set(), set())
    with pytest.raises(TypeError):
        own.popped("text", (1, 1, 1, "", ""), ("b", "t", 1, 1, set()), b"", 1)
    with pytest.raises((TypeError, OverflowError)):
        own.popped(b"", (1 << 70, 1, 1, "", ""), ("b", "t", 1, 1, set()), b"", 1)
