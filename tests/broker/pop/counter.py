"""A client that pops over raw frames, and what it gets, in a few words."""

import json
from typing import Any, NamedTuple

from pocketmq.broker.broker import Broker
from pocketmq.broker.pop.entry import start_popping
from pocketmq.broker.pop.pops import Pops
from pocketmq.protocol import Command, handles
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests.pop import bits_of
from tests.broker.running import Client, records, send_fields


class Got(NamedTuple):
    """A popped message."""

    body: bytes
    topic: str
    tries: int
    handle: handles.PopHandle
    properties: dict[str, str]


def serving(broker: Broker) -> Pops:
    """Return a broker's pops, begun if nobody has asked for any."""
    if broker.state.pops is None:
        start_popping(broker.state)
    assert isinstance(broker.state.pops, Pops)
    return broker.state.pops


async def create(peer: Client, topic: str, queues: int = 1) -> None:
    fields = {
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": str(queues), "order": "false",
        "writeQueueNums": str(queues), "perm": "6", "topicFilterType": "SINGLE_TAG",
    }  # fmt: skip
    answer = await peer.ask(17, fields)
    assert answer.code == 0, answer.remark


async def send(peer: Client, topic: str, *bodies: str, queue: int = 0, tag: str = "") -> None:
    properties = "UNIQ_KEY\1K\2" + (f"TAGS\1{tag}\2" if tag else "")
    for body in bodies:
        fields = send_fields(topic, properties, e=str(queue))
        answer = await peer.ask(310, fields, body.encode())
        assert answer.code == 0, answer.remark


def pop_fields(topic: str, group: str = "G", **changes: Any) -> dict[str, str]:
    fields = {
        "consumerGroup": group, "topic": topic, "queueId": "-1", "maxMsgNums": "32",
        "invisibleTime": "10000", "pollTime": "0", "bornTime": "0", "initMode": "0",
        "expType": "TAG", "exp": "*", "order": "false",
    }  # fmt: skip
    return fields | {key: str(value) for key, value in changes.items()}


def got(answer: Command, topic: str) -> list[Got]:
    """Read what an answer brought, as clients do."""
    if answer.code != 0:
        assert answer.code == 210, (answer.code, answer.remark)
        return []
    ext = answer.ext
    starts = handles.read_start_offsets(ext["startOffsetInfo"])
    places = {
        q: list(each) for q, each in handles.read_message_offsets(ext["msgOffsetInfo"]).items()
    }
    found = []
    for record in records(answer):
        properties = decode_properties(record.property_bytes)
        name = record.topic_bytes.decode()
        text = properties.get("POP_CK")
        if text is None:
            queue = handles.PopQueue(handles.TopicMark.of(name), record.queue_id)
            assert record.queue_offset in places[queue]
            handle = handles.PopHandle(
                start_offset=starts[queue],
                pop_time_ms=int(ext["popTime"]),
                invisible_time_ms=int(ext["invisibleTime"]),
                revive_queue_id=int(ext["reviveQid"]),
                mark=queue.mark,
                broker_name="broker-a",
                queue_id=record.queue_id,
                queue_offset=record.queue_offset,
            )
        else:
            handle = handles.PopHandle.parse(text)
        body, tries = record.stored_body, record.reconsume_times
        found.append(Got(body, name, tries, handle, properties))
    return found


async def pop(peer: Client, topic: str, group: str = "G", **changes: Any) -> list[Got]:
    """Pop what there is."""
    answer = await peer.ask(Code.POP_MESSAGE, pop_fields(topic, group, **changes))
    return got(answer, topic)


def place(message: Got, topic: str, group: str = "G") -> dict[str, str]:
    handle = message.handle
    return {
        "consumerGroup": group, "topic": handle.mark.real_topic(topic, group),
        "queueId": str(handle.queue_id), "offset": str(handle.queue_offset),
        "extraInfo": str(handle),
    }  # fmt: skip


async def ack(peer: Client, topic: str, *messages: Got, group: str = "G") -> None:
    for message in messages:
        answer = await peer.ask(Code.ACK_MESSAGE, place(message, topic, group))
        assert answer.code == 0, answer.remark


async def hide(peer: Client, topic: str, message: Got, ms: int, group: str = "G") -> Got:
    fields = place(message, topic, group) | {"invisibleTime": str(ms)}
    answer = await peer.ask(Code.CHANGE_MESSAGE_INVISIBLETIME, fields)
    assert answer.code == 0, answer.remark
    handle = handles.PopHandle(
        start_offset=message.handle.queue_offset or 0,
        pop_time_ms=int(answer.ext["popTime"]),
        invisible_time_ms=int(answer.ext["invisibleTime"]),
        revive_queue_id=int(answer.ext["reviveQid"]),
        mark=message.handle.mark,
        broker_name="broker-a",
        queue_id=message.handle.queue_id,
        queue_offset=message.handle.queue_offset,
    )
    return message._replace(handle=handle)


def batch_body(topic: str, *messages: Got, group: str = "G") -> bytes:
    """Acknowledge messages of one pop and one queue."""
    handle = messages[0].handle
    offsets = [message.handle.queue_offset or 0 for message in messages]
    ack = {
        "c": group, "t": topic, "r": handle.mark.value, "so": handle.start_offset,
        "q": handle.queue_id, "rq": handle.revive_queue_id, "pt": handle.pop_time_ms,
        "it": handle.invisible_time_ms, "b": bits_of(offsets, handle.start_offset),
    }  # fmt: skip
    return json.dumps({"brokerName": "broker-a", "acks": [ack]}).encode()


async def committed(peer: Client, topic: str, group: str = "G", queue: int = 0) -> int | None:
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue)}
    answer = await peer.ask(14, fields | {"setZeroIfNotFound": "false"})
    return int(answer.ext["offset"]) if answer.code == 0 else None


def bodies(messages: list[Got]) -> list[str]:
    return [message.body.decode() for message in messages]
