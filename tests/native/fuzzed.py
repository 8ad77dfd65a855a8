"""Input for the fuzzer: for each function of the core what makes arguments by chance.

Add a function here when you add one to the core: a few sound inputs, damaged at random.
"""

from array import array
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any
from zlib import crc32

import msgspec

from pocketmq.client.producer.requests import Template
from pocketmq.errors import MessagesCutShort
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.frame import FRAME_LIMIT
from pocketmq.protocol.peers import Language
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record, pack_record
from tests.native.both import Freed, Sink
from tests.protocol.golden_messages import STORED_BY_JAVA, V1, V6_HOSTS

Call = tuple[tuple[Any, ...], dict[str, Any]]
_ODD = (0, 1, 2, 22, 91, 127, 128, 255)
_WORDS = (b"TAGS", b"KEYS", b"UNIQ_KEY", b"\x01", b"\x02", b"k", b"\xff", "ä".encode(), b"\0", b"a")


def damaged(random: Random, sound: bytes) -> bytes:
    """Return bytes with some of them changed, cut off, left out or repeated; or others."""
    if random.random() < 0.05:
        return random.randbytes(random.randrange(300))
    raw = bytearray(sound)
    for _ in range(random.randrange(4) if raw else 0):
        value = random.choice(_ODD) if random.random() < 0.5 else random.randrange(256)
        raw[random.randrange(len(raw))] = value
    at = random.randrange(len(raw) + 1)
    kind = random.randrange(6)
    if kind == 0:
        del raw[at:]
    elif kind == 1:
        raw += raw[at:]
    elif kind == 2:
        del raw[at : at + random.randrange(1, 9)]
    return bytes(raw)


def _text(random: Random) -> bytes:
    return b"".join(random.choices(_WORDS, k=random.randrange(12)))


def _number(random: Random, bits: int) -> int:
    edge = 1 << bits - 1
    return random.choice([0, 1, -1, edge - 1, -edge, random.randrange(-edge, edge)])


def _record(random: Random) -> Record:
    return Record(
        topic=b"t" * random.choice([0, 1, 6, 127, 128]),
        body=random.randbytes(random.choice([0, 1, 100, 1024, 1025])),
        property_bytes=_text(random),
        queue_id=_number(random, 32),
        flag=_number(random, 32),
        sys_flag=random.choice([0, 0, 0, 1, 64, 128, _number(random, 32)]),
        born_timestamp_ms=_number(random, 64),
        born_host=bytes(random.choice([8, 8, 20])),
        reconsume_times=_number(random, 32),
        queue_offset=_number(random, 64),
        store_host=bytes(random.choice([8, 8, 20])),
        body_crc=random.choice([None, None, None, 0, 5]),
    )


def plain_messages(random: Random) -> Call:
    kinds = [V1, V1, V6_HOSTS, STORED_BY_JAVA, encode_record(_record(random))]
    body = damaged(random, b"".join(random.choices(kinds, k=random.randrange(5))))
    return (body, DeliveryContext("broker-a", offset_delta=_number(random, 64))), {}


def offsets_and_bytes(random: Random) -> Call:
    messages: list[ReceivedMessage] = []
    for _ in range(random.randrange(3)):
        (body, delivery), _ = plain_messages(random)
        with suppress(MessagesCutShort):
            messages += decode_pulled(body, delivery)
    if random.random() < 0.3:
        random.shuffle(messages)
    return (messages,), {}


def pack_batch(random: Random) -> Call:
    entries = [
        BatchEntry(random.randbytes(random.randrange(40)), _text(random), _number(random, 32))
        for _ in range(random.randrange(5))
    ]
    if random.random() < 0.3:
        entries = entries[:1] * random.randrange(12)  # many that are alike
    body = damaged(random, encode_batch(entries))
    places = random.choice([0, 50, 2**63 - 100]), random.choice([0, 1 << 40, 2**63 - 100, -1])
    options = {"store_timestamp_ms": _number(random, 64), "store_host": bytes(8)}
    return (body, _record(random), *places), options


def encode_numbered(random: Random) -> Call:
    def message() -> Message:
        properties: dict[str, str] = {}
        keys = random.choice([(), ("k1",), ["k1", "k2"]])
        tag = random.choice([None, "tag", _text(random).decode("utf-8", "replace")])
        made = Message("T", random.randbytes(20), tag, keys, properties, _number(random, 32))
        if random.random() < 0.3:  # it would refuse some of these
            properties[_text(random).decode("utf-8", "replace")] = "value"
        return made

    batch = [message() for _ in range(random.randrange(4))]
    steps = [random.randrange(70_000) for _ in range(len(batch) + (random.random() < 0.05))]
    return (batch, "7F000001004D000000050001ABCD", steps), {}


def cut_commands(random: Random) -> Call:
    def command() -> bytes:
        fields = {
            _text(random).decode("utf-8", "replace"): "value" for _ in range(random.randrange(3))
        }
        return Command(
            random.choice([0, 10, 310]),
            _number(random, 32),
            random.randrange(4),
            random.choice([Language.PYTHON, Language.JAVA, None]),
            remark=random.choice([None, "", "why", "ä", _text(random).decode("utf-8", "replace")]),
            ext_fields=random.choice([None, {}, fields]),
            body=random.randbytes(random.randrange(20)),
            serialize=random.choice([0, 0, 0, 1]),
        ).encode()

    data = damaged(random, b"".join(command() for _ in range(random.randrange(4))))
    return (data, random.randrange(3) * 4, random.choice([100, FRAME_LIMIT, FRAME_LIMIT])), {}


def words_of_records(random: Random) -> Call:
    start, data = random.choice([0, 1 << 31, 1 << 40]), b""
    for _ in range(random.randrange(5)):
        time = random.choice([5, 5, 6, 4])
        data += pack_record(_record(random), 0, start + len(data), time, bytes(8))
    modulus = random.choice([268435459, 536870909])
    return (damaged(random, data), start, modulus, random.choice([-(2**63) + 1, 5])), {}


def md5_starts(random: Random) -> Call:
    starts, endings = (
        [random.randbytes(random.choice([0, 9, 54, 55, 56, 64, 130])) for _ in range(number)]
        for number in (random.randrange(12), random.randrange(4))
    )
    return (starts, random.choice([endings, endings, (), [None]])), {}


def wrong_body(random: Random) -> Call:
    data, count = random.randbytes(random.randrange(300)), random.randrange(4)
    bounds = [sorted(random.randrange(-1, len(data) + 2) for _ in "se") for _ in range(count)]
    stored = [random.choice([0, crc32(data[s:e]) & 0x7FFF_FFFF, 5]) for s, e in bounds]
    columns = [[start for start, _ in bounds], [end for _, end in bounds], stored]
    packed = [array("q", column).tobytes() for column in columns]
    return (
        data,
        *(damaged(random, each) if random.random() < 0.1 else each for each in packed),
    ), {}


def split_properties(random: Random) -> Call:
    texts = [_text(random).replace(b"\xff", b"") for _ in range(random.randrange(5))]
    if random.random() < 0.7:
        texts = [text.replace("ä".encode(), b"") for text in texts]
    bounds = [sum(map(len, texts[:at])) for at in range(len(texts) + 1)]
    starts, ends = (array("q", column).tobytes() for column in (bounds[:-1], bounds[1:]))
    if random.random() < 0.2:
        starts, ends = damaged(random, starts), damaged(random, ends)
    wanted = tuple(random.choices([b"KEYS", b"TAGS", b"k", b"a"], k=random.randrange(4)))
    left_out = random.choice([None, (), (b"KEYS", b"k")])
    return (b"".join(texts), starts, ends, wanted, left_out), {}


def plain_frame(random: Random) -> Call:
    head, middle, tail = (damaged(random, b'{"code":310,"extFields":{"f":"') for _ in range(3))
    prefix = random.choice(["7F000001004D000000050001ABCD", ""])
    body = random.randbytes(random.randrange(200))
    numbers = _number(random, 64), _number(random, 32)
    return (head, middle, tail, prefix, random.randrange(70_000), body, *numbers), {}


def _posted(random: Random, opaque: int) -> tuple[Any, ...]:
    queue = MessageQueue("t", "b", random.choice([3, 3, 3, 4]))
    template = Template(queue, *(damaged(random, b'{"code":310,"a":"') for _ in range(2)))
    prefix = random.choice(["7F000001004D000000050001ABCD", "CD", ""])
    message = Message("t", random.randbytes(random.randrange(200)))
    tail, number, born = _text(random), random.randrange(70_000), _number(random, 64)
    window = Freed([])
    sink = Sink(window, opaque, cancelled=random.random() < 0.1)
    made = tail, prefix, number, born, message, queue, "topic", "connection", 4.0, window
    return sink, 5.0, 310, 3.0, opaque, template, *made


def plain_frames(random: Random) -> Call:
    return ([_posted(random, _number(random, 32)) for _ in range(random.randrange(4))],), {}


def take_receipts(random: Random) -> Call:
    waiting = {opaque: _posted(random, opaque) for opaque in range(random.randrange(3, 9))}
    waiting[2] = random.choice([waiting[2], waiting[2][:4]])  # another request
    shared = {"MSG_REGION": "eu", "TRACE_ON": random.choice(["true", "false"])}
    data = b""
    for opaque, (_, _, _, _, _, _, _, prefix, number, *_) in [
        (key, posted) for key, posted in waiting.items() if len(posted) > 4
    ]:
        fields = {"queueId": "3", "transactionId": f"{prefix}{number & 0xFFFF:04X}", **shared}
        fields |= {"msgId": "AB" * random.randrange(3), "queueOffset": str(_number(random, 64))}
        if random.random() < 0.05:
            fields["batchUniqId"] = "EF"
        said = Command(random.choice([0] * 9 + [1]), opaque, flag=1, ext_fields=fields)
        data += said.encode()
    if random.random() < 0.5:
        data = damaged(random, data)
    limit, freed = random.choice([FRAME_LIMIT, FRAME_LIMIT, 200]), Freed([])
    return (data, 0, limit, waiting, freed.got), {}


def stored_answer(random: Random) -> Call:
    fields = {"msgId": "AB" * 16, "queueId": "3", "queueOffset": str(_number(random, 64))}
    more = {
        "transactionId": "CD",
        "batchUniqId": "EF",
        "recallHandle": "handle",
        "MSG_REGION": random.choice(["", "eu"]),
        "TRACE_ON": random.choice(["true", "false"]),
    }
    fields |= {name: more[name] for name in more if random.random() < 0.3}
    answer = Command(
        random.choice([0, 0, 0, 1]),
        7,
        random.choice([1, 1, 3, 0]),
        remark=random.choice([None, None, "ä"]),
        ext_fields=fields,
        serialize=random.choice([0, 0, 0, 1]),
    )
    return (damaged(random, answer.encode()), random.choice([7, 7, 7, 8])), {}


def batch_frame(random: Random) -> Call:
    (messages, prefix, steps), _ = encode_numbered(random)
    pieces = [damaged(random, b'{"code":320,"a":"') for _ in range(3)]
    if messages and random.random() < 0.2:
        messages = [*messages, Message("other", b"x")]
        steps = [*steps, 1]
    born, opaque = _number(random, 64), _number(random, 32)
    return (*pieces, messages, prefix, steps, born, opaque), {}


def _popped(random: Random) -> bytes:
    offsets = [_number(random, 64) for _ in range(random.randrange(1, 4))]
    place = f"{random.choice('0012')} {random.choice(['3', '03', '4'])} "
    fields = {
        "popTime": str(_number(random, 64)),
        "invisibleTime": "60000",
        "reviveQid": str(_number(random, 32)),
        "restNum": "0",
        "startOffsetInfo": f"{place}{offsets[0]}",
        "msgOffsetInfo": place + ",".join(map(str, offsets)),
    }
    topic = random.choice([b"orders", b"orders", b"%RETRY%g+orders", b"%RETRY%g_orders"])
    like = Record(topic=topic, body=b"body", queue_id=3, property_bytes=_text(random))
    answer = Command(
        random.choice([0, 0, 0, 1]),
        7,
        random.choice([1, 1, 3, 0]),
        remark=random.choice([None, "FOUND", "ä"]),
        ext_fields=random.choice([fields, fields, fields, {}]),
        body=b"".join(encode_record(like) for _ in offsets),
    )
    return damaged(random, answer.encode()) if random.random() < 0.7 else answer.encode()


def read_usual_pop(random: Random) -> Call:
    return ("broker-a", "orders", _popped(random), random.choice([7, 7, 7, 8])), {}


def is_done(random: Random) -> Call:
    done = Command(0, 7, 1, ext_fields=random.choice([None, {}])).encode()
    data = random.choice([_popped(random), done, damaged(random, done)])
    return (data, random.choice([7, 7, 7, 8])), {}


def usual_commit(random: Random) -> Call:
    place = random.choice([b"T\2REAL_QID\x0103", b"T\2REAL_QID\x013", b"\2", "ä\2".encode()])
    pieces = [_text(random), b"PGROUP\1g\2", b"REAL_TOPIC\1T\2REAL_QID\x013\2"]
    if random.random() < 0.3:
        pieces.insert(random.randrange(4), b"CHECK_IMMUNITY_TIME_IN_SECONDS\x015\2")
    if random.random() < 0.3:
        pieces.insert(random.randrange(4), b"REAL_TOPIC\1" + place)
    record = msgspec.structs.replace(_record(random), property_bytes=b"".join(pieces))
    data = encode_record(record)
    return (random.choice([data, damaged(random, data)]), random.choice([b"g", b"g", b"h"])), {}


FUZZED: dict[str, Callable[[Random], Call]] = {
    "batch_frame": batch_frame,
    "body_bytes": offsets_and_bytes,
    "cut_commands": cut_commands,
    "encode_numbered": encode_numbered,
    "is_done": is_done,
    "offsets_and_bytes": offsets_and_bytes,
    "pack_batch": pack_batch,
    "plain_frame": plain_frame,
    "plain_frames": plain_frames,
    "plain_messages": plain_messages,
    "split_properties": split_properties,
    "read_usual_pop": read_usual_pop,
    "stored_answer": stored_answer,
    "stored_batch": stored_answer,
    "take_receipts": take_receipts,
    "usual_commit": usual_commit,
    "words_of_records": words_of_records,
    "md5_starts": md5_starts,
    "wrong_body": wrong_body,
}
