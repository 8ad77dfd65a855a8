"""Plain calls of gRPC clients in the core: what it sends and answers is what Python would.

The reference is the translation in `pocketmq.proxy`; whatever the core does not take, that gets.
"""

import os
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

pytest.importorskip("google.protobuf")

from google.protobuf.message import DecodeError

from pocketmq.client.pop.questions import PopQuestions
from pocketmq.client.producer.requests import Outgoing, RequestWriter
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.model import MessageQueue
from pocketmq.model.kinds import TopicKind
from pocketmq.protocol import Command
from pocketmq.protocol.command import RESPONSE_FLAG
from pocketmq.protocol.command_reader import cut_commands
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests.sending import SendResponse
from pocketmq.proxy.calls import sending, settling
from pocketmq.proxy.calls.shortcuts import ack_head, core_shortcuts
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.outgoing import StoredForm, stored_forms
from pocketmq.proxy.translation.receipts import read_receipt_handle
from pocketmq.proxy.translation.refusals import OK
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import SERVICE
from tests.native.both import core
from tests.native.fuzzed import damaged
from tests.native.test_grpc import (
    CALLED,
    DATA,
    END_STREAM,
    HELLO,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    call,
    frame,
    frames,
    headers,
    message,
)

SECONDS = float(os.environ.get("POCKETMQ_FUZZ_SECONDS", "1"))
ADDRESS = "10.1.2.3:4567"
QUEUE = MessageQueue("orders", "broker-a", 3)
LIMITS = ProxyLimits(max_message_size=1000, max_user_property_size=300, user_property_max_num=5)
SEND, ACK = f"/{SERVICE}/SendMessage", f"/{SERVICE}/AckMessage"
OPAQUE = 77
ACKNOWLEDGED = 1
QUESTIONS = PopQuestions("billing", ordered=False, from_first=False, grace=1.0)
_TEXTS = ("", "a", "x y", 'q"\\', "ä", "\t", " ", "|", "KEYS", "DELAY", "__SHARDINGKEY", "k" * 200)

_IDS = ("01AB", "01AB", "id", "", "ä", " ")


class Client:
    """A connection of the core whose client has named itself, and places for its calls."""

    def __init__(self, largest: int = 100_000) -> None:
        self.own = Connection(["x-id"], 100, largest)
        self.own.feed(HELLO + frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4, "big")))
        self.shortcuts = core_shortcuts(core, LIMITS)
        self.own.shorten(self.shortcuts, "me", ADDRESS)
        self.writer = RequestWriter("orders", ProducerOptions(group="orders"))
        self.stream = -1
        self.output = b""

    def flush(self) -> None:
        self.output, *_ = self.own.flush()

    def plain(self, path: str, request: bytes) -> Any:
        """Make a call; return it if the core takes it."""
        template = self.writer.plain_template(QUEUE)
        place = (object(), template.head, template.middle)
        self.shortcuts.offer_sends("orders", [place], 1, 60.0)
        self.stream += 2
        _, events, more, plain = self.own.feed(call(self.stream, request, **{":path": path}))
        assert not more
        if plain:
            assert not events
            return plain[0]
        ((_, _, found, _, _, raw, _),) = events
        assert (found, raw) == (path, request)
        self.own.end(self.stream, 12, "")
        self.own.flush()
        return None

    def answered(self, plain: Any, answer: Command) -> bytes:
        """Answer the request of a call; return the response that its client gets."""
        plain.owner = self
        raw, waiting = answer.encode(), {OPAQUE: (plain, 0.0), 1: ("another", 0.0)}
        assert not plain.done()
        assert self.shortcuts.read_answers(raw, 0, 1 << 20, waiting) == (0, len(raw))
        assert waiting == {1: ("another", 0.0)}
        assert plain.done()
        ((_, _, _, data), *_) = [each for each in frames(self.output) if each[0] == 0]
        return bytes(data[5:])


def test_places_are_used_in_turn_for_as_many_sends_as_were_offered() -> None:
    client = Client()
    template = client.writer.plain_template(QUEUE)
    own = [object(), object()]
    places = [(each, template.head, template.middle) for each in own]
    request = s.SendMessageRequest(messages=[usual_message()]).SerializeToString()

    def next_place() -> Any:
        client.stream += 2
        made = call(client.stream, request, **{":path": SEND})
        _, _, _, plain = client.own.feed(made)
        return plain[0].place if plain else None

    assert client.shortcuts.left("orders") == 0
    client.shortcuts.offer_sends("orders", places, 3, 60.0)
    assert [next_place() for _ in range(2)] == own
    assert client.shortcuts.left("orders") is None
    assert [next_place() for _ in range(2)] == [own[0], None]
    assert client.shortcuts.left("orders") == 0
    client.shortcuts.offer_sends("orders", places, 3, 0.0)
    assert next_place() is None
    assert client.shortcuts.left("orders") == 3
    client.shortcuts.offer_sends("orders", [], 3, 60.0)
    assert next_place() is None


def usual_message() -> d.Message:
    system = d.SystemProperties(message_id="01AB", message_type=d.MessageType.NORMAL)
    return d.Message(topic=d.Resource(name="orders"), system_properties=system, body=b"x")


def sent_command(plain: Any) -> Command:
    raw = plain.frame(OPAQUE)
    ((found,), end, _) = cut_commands(raw, 0, 1 << 20)
    assert end == len(raw)
    return found


def usual_send(random: Random) -> d.Message:
    system = d.SystemProperties(
        message_id=random.choice(_IDS),
        tag=random.choice(_TEXTS),
        message_type=d.MessageType.Name(random.randrange(5)),
        body_encoding=d.Encoding.Name(random.randrange(3)),
    )
    for _ in range(random.randrange(3)):
        system.keys.append(random.choice(_TEXTS))
    if random.random() < 0.8:
        system.born_timestamp.FromMilliseconds(random.randrange(1 << 41))
    for name in ("born_host", "trace_context", "message_group", "lite_topic"):
        if random.random() < 0.2:
            setattr(system, name, random.choice(_TEXTS))
    if random.random() < 0.1:
        system.delivery_timestamp.FromMilliseconds(random.randrange(1 << 41))
    if random.random() < 0.1:
        system.priority = random.randrange(3)
    names = [random.choice(_TEXTS) for _ in range(random.randrange(4))]
    return d.Message(
        topic=d.Resource(name=random.choice(["orders", "orders", "orders", "others"])),
        user_properties={name: random.choice(_TEXTS) for name in names},
        system_properties=system,
        body=random.randbytes(random.choice([0, 1, 100, 1000, 1001])),
    )


def plain_send(random: Random) -> d.Message:
    system = d.SystemProperties(message_id="01AB", tag="t", message_type=d.MessageType.NORMAL)
    system.born_timestamp.FromMilliseconds(random.randrange(1 << 41))
    return d.Message(
        topic=d.Resource(name="orders"),
        user_properties={"a": 'b"c', "d": "e f"},
        system_properties=system,
        body=b"body",
    )


def request_of(random: Random) -> bytes:
    make = random.choice([plain_send, usual_send, usual_send])
    messages = [make(random) for _ in range(1 if random.random() < 0.9 else random.randrange(3))]
    raw = s.SendMessageRequest(messages=messages).SerializeToString()
    return damaged(random, raw) if random.random() < 0.4 else bytes(raw)


def form_of(raw: bytes, now_ms: int) -> StoredForm:
    """Read a request as Python does; it must accept it."""
    (form,) = stored_forms(s.SendMessageRequest.FromString(raw).messages, ADDRESS, LIMITS, now_ms)
    return form


def test_what_the_core_sends_is_what_python_sends() -> None:
    client, taken, made = Client(), 0, 0
    for random in seeds():
        raw = request_of(random)
        made += 1
        plain = client.plain(SEND, raw)
        if plain is None:
            continue
        taken += 1
        now_ms = time.time_ns() // 1_000_000
        form, found = form_of(raw, now_ms), sent_command(plain)
        assert (form.topic, form.kind, form.message_group) == ("orders", TopicKind.NORMAL, "")
        message = Outgoing(form.topic, form.body, form.properties, form.message_id)
        made_by_python = client.writer.frame(message, QUEUE, OPAQUE, form.born_ms)
        ((expected,), _, _) = cut_commands(made_by_python, 0, 1 << 20)
        same_but_born(found, expected)
        header = SendResponse(
            msg_id="0" * 32, queue_id=3, queue_offset=random.randrange(1 << 40), transaction_id="T"
        )
        answer = Command.request(0, OPAQUE, header)
        answer = msgspec.structs.replace(answer, flag=RESPONSE_FLAG)
        entry = sending.entry_of(form, QUEUE, answer)
        response = s.SendMessageResponse.FromString(client.answered(plain, answer))
        assert response == sending.response_of([entry])
    assert taken > made / 20


def seconds_to_read(properties: int) -> float:
    """Return the processor time that a message takes with so many properties, at the least."""
    entries = [d.Message.UserPropertiesEntry(key=f"{each:05}") for each in range(properties)]
    many = b"".join(b"\x12\x07" + each.SerializeToString() for each in entries)
    plain = bytes(plain_send(Random(0)).SerializeToString()) + many
    raw = b"\x0a" + varint(len(plain)) + plain
    assert len(s.SendMessageRequest.FromString(raw).messages[0].user_properties) > properties
    framed = message(raw)
    parts = [framed[at : at + 16384] for at in range(0, len(framed), 16384)]
    data = headers(1, **{":path": SEND}) + b"".join(frame(DATA, 0, 1, each) for each in parts)
    reads = []
    for _ in range(3):
        client = Client(largest=1 << 20)
        client.own.feed(frame(SETTINGS, ACKNOWLEDGED))
        begun = time.thread_time()
        _, ((kind, *_, found, _),), _, taken = client.own.feed(data + frame(DATA, END_STREAM, 1))
        reads.append(time.thread_time() - begun)
        assert (kind, found, taken) == (CALLED, raw, [])
    return min(reads)


def test_a_message_with_many_properties_is_left_to_python_at_once() -> None:
    """Names are compared with each other, which takes long for as many as one read can bring."""
    assert seconds_to_read(25_000) < 40 * seconds_to_read(2500)


def varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def test_what_protobuf_refuses_is_left_to_python() -> None:
    """It reads numbers of fields and lengths of at most five bytes."""
    raw = bytes(plain_send(Random(0)).SerializeToString())
    tag, size = b"\x8a\x80\x80\x80", bytes([len(raw) & 127 | 128, len(raw) >> 7 | 128, 128, 128])
    for start, valid in (
        (tag + b"\0" + varint(len(raw)), True),
        (tag + b"\x80\0" + varint(len(raw)), False),
        (b"\x0a" + size + b"\0", True),
        (b"\x0a" + size + b"\x80\0", False),
    ):
        assert (Client().plain(SEND, start + raw) is not None) == valid
        if not valid:
            with pytest.raises(DecodeError):
                s.SendMessageRequest.FromString(start + raw)


def test_a_trace_context_among_the_properties_is_left_to_python() -> None:
    made = plain_send(Random(0))
    made.system_properties.trace_context = "c"
    for name, taken in (("a", True), ("TRACE_CONTEXT", False)):
        made.user_properties[name] = "x"
        raw = s.SendMessageRequest(messages=[made]).SerializeToString()
        assert (Client().plain(SEND, raw) is not None) == taken


def same_but_born(found: Command, expected: Command) -> None:
    """Compare requests; a message without a time of birth is born when it is read."""
    ours, theirs = dict(found.ext), dict(expected.ext)
    assert abs(int(ours.pop("g")) - int(theirs.pop("g"))) < 10_000
    properties = ours.pop("i"), theirs.pop("i")
    read = [decode_properties(each.encode()) for each in properties]
    assert read[0] == read[1]
    assert len(properties[0]) == len(properties[1])
    assert ours == theirs
    assert (found.code, found.opaque, found.flag) == (expected.code, expected.opaque, expected.flag)
    assert (found.language, found.version) == (expected.language, expected.version)
    assert bytes(found.body) == bytes(expected.body)


def ack_request(random: Random) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    parts: list[Any] = [
        random.randrange(100), now_ms - random.choice([0, 30_000, 60_001]), 60_000,
        random.choice([0, 999]), random.choice([0, 0, 0, 1, 2]), "broker-a", random.randrange(4),
        random.randrange(1 << 40), random.randrange(1 << 40),
    ]  # fmt: skip
    if random.random() < 0.2:
        parts[random.randrange(len(parts))] = random.choice(["", "x", "-1", "007", "+1", 1 << 70])
    if random.random() < 0.1:
        parts = parts[: random.randrange(10)]
    handle = " ".join(map(str, parts))
    entries = [s.AckMessageEntry(message_id=random.choice(_IDS), receipt_handle=handle)]
    raw = s.AckMessageRequest(
        group=d.Resource(name="billing"),
        topic=d.Resource(name=random.choice(["orders", "orders", "orders", "others"])),
        entries=entries * random.choice([1, 1, 1, 1, 0, 2]),
    ).SerializeToString()
    return damaged(random, raw) if random.random() < 0.4 else bytes(raw)


def test_the_acks_of_the_core_are_those_of_python() -> None:
    client, taken, made = Client(), 0, 0
    names = ("billing", "orders", "broker-a")
    for random in seeds():
        raw = ack_request(random)
        made += 1
        client.shortcuts.offer_acks(names, object(), ack_head(*names), 60.0)
        plain = client.plain(ACK, raw)
        if plain is None:
            continue
        taken += 1
        request = s.AckMessageRequest.FromString(raw)
        (entry,) = request.entries
        assert checks.topic_name(request.topic) == "orders"
        assert checks.group_name(request.group) == "billing"
        receipt = read_receipt_handle(entry.receipt_handle)
        receipt.check_valid(time.time_ns() // 1_000_000 - 10_000)
        assert plain.receipt == ("me", entry.receipt_handle)
        found = sent_command(plain)
        asked = next(QUESTIONS.ack_one("broker-a", "orders", receipt.handle))
        expected = Command.request(asked.code, OPAQUE, asked.header)
        assert dict(found.ext) == dict(expected.ext)
        assert (found.code, found.opaque, found.flag) == (expected.code, OPAQUE, 0)
        answer = msgspec.structs.replace(Command.request(0, OPAQUE), flag=RESPONSE_FLAG)
        response = s.AckMessageResponse.FromString(client.answered(plain, answer))
        assert response == settling.response_of([settling.result_of(entry, OK)])
    assert taken > made / 20


def seeds() -> Iterator[Random]:
    """Yield random numbers for as long as the test may take."""
    start = int(time.time()) << 32 if SECONDS > 1 else 0
    end, seed = time.process_time() + SECONDS, start
    while time.process_time() < end or seed - start < 200:
        yield Random(seed)
        seed += 1
