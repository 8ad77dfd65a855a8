"""Each function of the native core beside the pure one: processor time per message, and the ratio.

Rounds of both alternate; the least of the rounds counts.
"""

import time
from array import array
from collections.abc import Callable
from typing import Any

from pocketmq import native
from pocketmq.broker.transactions import usual_commits
from pocketmq.client.pop import usual
from pocketmq.client.producer import plain_frames
from pocketmq.client.producer.requests import Template
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import Command, DeliveryContext, command_reader, pulled, split_properties
from pocketmq.protocol.batch import encode_numbered
from pocketmq.protocol.batch_records import pack_batch
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.records import Record, encode_record

ROUNDS = 9
SECONDS = 0.05
BODY = bytes(100)
IMPORTED = (command_reader, plain_frames, pulled, split_properties, usual, usual_commits)
"""Importing a module fills `native.pure` with its functions."""
NOW_MS = 1_790_000_000_000
Function = Callable[..., object]
Work = Callable[[Function], object]
Row = tuple[str, str, int, Work]
"""A name, the function, how many messages a call has, and how it is called."""


def batch_rows(kind: str, messages: list[Message]) -> list[Row]:
    ids = UniqueIds(bytes((10, 1, 2, 3)), 70001, 0x1B2A3C4D)
    like = Record(topic=b"orders", body=b"", queue_id=3, born_timestamp_ms=NOW_MS)
    count = len(messages)
    body, _ = encode_numbered(messages, *ids.take(NOW_MS, count))

    def encode(function: Function) -> object:
        return function(messages, *ids.take(NOW_MS, count))

    def pack(function: Function) -> object:
        return function(body, like, 5, 1 << 30, store_timestamp_ms=NOW_MS, store_host=bytes(8))

    records = pack_batch(body, like, 0, 0, store_timestamp_ms=NOW_MS, store_host=bytes(8)).data

    def find(function: Function) -> object:
        return function(records, DeliveryContext("broker-a"))

    return [
        (f"encode a batch of {count}{kind}", "encode_numbered", count, encode),
        (f"records of a batch of {count}{kind}", "pack_batch", count, pack),
        (f"messages of a pull of {count}{kind}", "plain_messages", count, find),
    ]


class _Sink:
    """A caller that waits for its receipt."""

    def done(self) -> bool:
        return False

    def set_result(self, _: object) -> None:
        pass


def posted(count: int) -> list[tuple[Any, ...]]:
    """Return plain sends as a producer posts them, numbered from 0."""
    queue = MessageQueue("orders", "broker-a", 3)
    head = b'{"code":310,"extFields":{"a":"shop","b":"orders","c":"TBW102","d":"8","e":"3","f":"'
    template = Template(queue, head, b'","k":"false","l":"0","m":"false","n":"broker-a"},"flag":')
    tail, prefix = b"\\u0002WAIT\\u0001true\\u0002", "7F000001004D0000000500012C1B"
    message = Message("orders", BODY)
    return [
        (
            _Sink(), 5.0, 310, 3.0,
            number, template, tail, prefix, number, NOW_MS, message, queue,
            "topic", "connection", 4.0, "window",
        )
        for number in range(count)
    ]  # fmt: skip


def send_rows(count: int) -> list[Row]:
    """Return what a producer does with messages that it sends one by one, many in flight."""
    sends = posted(count)
    answers = b"".join(
        Command(
            0,
            number,
            flag=1,
            ext_fields={
                "queueId": "3",
                "transactionId": plain_frames.unique_id(send),
                "msgId": f"7F00000100002A9F{number * 250:016X}",
                "queueOffset": str(number),
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
            },
        ).encode()
        for number, send in enumerate(sends)
    )
    end = len(answers) + 1
    return [
        (f"requests of {count} plain sends", "plain_frames", count, lambda f: f(sends)),
        (
            f"responses to {count} plain sends",
            "take_receipts",
            count,
            lambda f: f(answers, 0, end, dict(enumerate(sends)), []),
        ),
    ]


def pop_rows(count: int) -> list[Row]:
    """Return what a consumer does with messages that it popped together."""
    record = encode_record(Record(topic=b"orders", body=BODY, queue_id=3))
    offsets = ",".join(str(n) for n in range(count))
    fields = {
        "popTime": str(NOW_MS), "invisibleTime": "60000", "reviveQid": "0", "restNum": "5",
        "startOffsetInfo": "0 3 0", "msgOffsetInfo": f"0 3 {offsets}",
    }  # fmt: skip
    said = Command(0, 7, flag=1, ext_fields=fields, body=record * count).encode()
    return [
        (
            f"messages of a pop of {count}",
            "read_usual_pop",
            count,
            lambda f: f("broker-a", "orders", said, 7),
        )
    ]


def rows() -> list[Row]:
    made = pop_rows(1) + pop_rows(32)
    half = encode_record(
        Record(
            topic=b"RMQ_SYS_TRANS_HALF_TOPIC",
            body=BODY,
            property_bytes=b"TRAN_MSG\1true\2PGROUP\1shop\2REAL_TOPIC\1orders\2REAL_QID\x013\2",
        )
    )
    made.append(("commit of a half message", "usual_commit", 1, lambda f: f(half, b"shop")))
    for count in (32, 256):
        plain = [Message("orders", BODY) for _ in range(count)]
        rich = [Message("orders", BODY, "paid", [f"A{n}"], {"region": "eu"}) for n in range(count)]
        for kind, messages in (("", plain), (", tag, key and property", rich)):
            made += batch_rows(kind, messages)
    sends = b"".join(
        Command.request(310, n, {"a": "shop", "b": "orders", "e": "3"}, BODY).encode()
        for n in range(64)
    )
    made.append(
        ("commands of a read of 64", "cut_commands", 64, lambda f: f(sends, 0, len(sends) + 1))
    )
    text = b"TAGS\1paid\2KEYS\1A17\2WAIT\1true\2UNIQ_KEY\1%032d\2region\1eu\2" % 7
    bounds = [array("q", [n * len(text) for n in range(at, at + 256)]).tobytes() for at in (0, 1)]
    names = (b"TAGS", b"KEYS", b"UNIQ_KEY")
    made.append(
        (
            "properties of 256 records",
            "split_properties",
            256,
            lambda f: f(256 * text, *bounds, names, (*names, b"WAIT")),
        )
    )
    made += send_rows(16)
    return made + send_rows(64)


def least(work: Work, functions: tuple[Function, ...]) -> list[float]:
    """Return the least processor time of a call of each function, of rounds that alternate."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for number, function in enumerate(functions):
            calls, start = 0, time.process_time()
            while (spent := time.process_time() - start) < SECONDS:
                work(function)
                calls += 1
            best[number] = min(best[number], spent / calls)
    return best


def main() -> None:
    print(native.description)
    if native.core is None:
        return
    print(f"{'µs per message':<52}{'native':>8}{'pure':>8}{'ratio':>8}")
    for name, function, count, work in rows():
        both = getattr(native.core, function), native.pure[function]
        core, pure = (seconds * 1e6 / count for seconds in least(work, both))
        print(f"{name:<52}{core:>8.2f}{pure:>8.2f}{pure / core:>8.1f}")


if __name__ == "__main__":
    main()
