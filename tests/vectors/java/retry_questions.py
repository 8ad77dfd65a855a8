"""Ask a fresh Java broker about delays, retries and dead letters, and keep what it says.

Needs a broker of RocketMQ 5.5.0 with an empty store, brokerName=broker-a and
messageDelayLevel=1s 1s 1s 1s: `python retry_questions.py HOST:PORT > java-retries.jsonl`. Each line
is a step with its answer; ids and places that no two brokers share are replaced by names.
"""

import json
import socket
import sys
from collections.abc import Iterator
from typing import Any

from pocketmq.protocol import Command
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.records import Record, decode_record

Step = dict[str, Any]

BORN_MS = 1_794_707_172_145
ID_DIGITS = 32
VERSION = 479  # V5_3_3
PULL = 11
VIEW = 33


def send(topic: str, properties: str | None, *, code: int = 310, **fields: Any) -> Step:
    """Send a message; `name` keeps its place for later steps, `show` asks for what was stored."""
    step = {key: fields.pop(key) for key in ("name", "show", "body") if key in fields}
    ext = {
        "a": "PG",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": str(BORN_MS),
        "h": "0",
        "i": properties,
        "j": "0",
        "k": "false",
        "m": "false",
    }
    ext.update(fields)
    ext = {key: value for key, value in ext.items() if value is not None}
    return {"code": code, "ext": ext, "body": "hello", "show": True} | step


def back(offset: Any, group: str | None = "CG", delay: str | None = "0", **fields: Any) -> Step:
    """Send a message back; `offset` may be the name of an earlier step."""
    version = fields.pop("version", None)
    ext = {
        "offset": offset,
        "group": group,
        "delayLevel": delay,
        "originMsgId": "X",
        "originTopic": "T2",
        "unitMode": "false",
    }
    ext.update(fields)
    ext = {key: value for key, value in ext.items() if value is not None}
    return {"code": 36, "ext": ext} | ({} if version is None else {"version": version})


def pull(topic: str, offset: int = 0, queue_id: int = 0, *, wait: bool = True, **step: Any) -> Step:
    """Read a queue, waiting until there is something."""
    return {
        "code": 11,
        "ext": {
            "consumerGroup": "CG",
            "topic": topic,
            "queueId": str(queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": "6" if wait else "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": "15000",
            "subscription": "*",
            "subVersion": "0",
            "expressionType": "TAG",
        },
    } | step


def group(name: str, **fields: Any) -> Step:
    config = {
        "groupName": name,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True,
        "retryQueueNums": 1,
        "retryMaxTimes": 16,
        "brokerId": 0,
        "whichBrokerWhenConsumeSlowly": 1,
        "notifyConsumerIdsChangedEnable": True,
    }
    return {"code": 200, "ext": {}, "body": json.dumps(config | fields)}


def heartbeat(name: str) -> Step:
    subscription = {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": "TAG",
        "subString": "*",
        "subVersion": 1,
        "tagsSet": [],
        "topic": "T1",
    }
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": name,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": [subscription],
        "unitMode": False,
    }
    body = {"clientID": "c1", "consumerDataSet": [consumer], "producerDataSet": []}
    return {"code": 34, "ext": {}, "body": json.dumps(body)}


def queues(code: int) -> Step:
    queue = {"brokerName": "broker-a", "queueId": 0, "topic": "T1"}
    body = {"clientId": "c1", "consumerGroup": "RG", "mqSet": [queue]}
    return {"code": code, "ext": {}, "body": json.dumps(body)}


def delays() -> Iterator[Step]:
    yield send(
        "T1", "UNIQ_KEY\1A\2WAIT\1true\2TAGS\1paid\2KEYS\1k1 k2\2DELAY\0011\2MYP\1v\2", h="7"
    )
    yield pull("T1")
    yield send("T1", "UNIQ_KEY\1B\2DELAY\00199\2")
    for value in ("0", "-1", "x", "+1", " 1", "1 ", "2147483648", ""):
        yield send("T1", f"UNIQ_KEY\1C\2DELAY\1{value}\2")
    timers = "TIMER_DELAY_SEC\0013\2TIMER_DELIVER_MS\00133\2TIMER_DELAY_MS\0015\2"
    yield send("T1", f"UNIQ_KEY\1D\2DELAY\0011\2{timers}")
    yield send("T1", "UNIQ_KEY\1E\2DELAY\0011\2REAL_TOPIC\1other\2REAL_QID\0019\2", e="2")
    yield send("T1", "UNIQ_KEY\1F\2DELAY\0011\2", f="8")
    entries = [BatchEntry(b"b", b"UNIQ_KEY\1G\2DELAY\0011\2", 0)]
    batch = encode_batch(entries).decode("latin-1")
    yield send("TB", "DELAY\0012\2", code=320, m="true", body=batch)
    yield send("TB", "UNIQ_KEY\1H\2", code=320, m="true", body=batch)


def backs() -> Iterator[Step]:
    yield heartbeat("CG")
    text = "UNIQ_KEY\1U\2TAGS\1paid\2KEYS\1k1\2WAIT\1true\2MYP\1v\2"
    yield send("T2", text, h="9", name="$first")
    yield back("$first", delay="-1")
    yield pull("%DLQ%CG")
    yield back("$first", delay="1")
    yield pull("%RETRY%CG", name="$again")
    yield back("$again")
    yield pull("%RETRY%CG", 1)
    yield back("$again", maxReconsumeTimes="1")
    yield pull("%DLQ%CG", 1)
    yield back("$again", maxReconsumeTimes="1", version=120)
    for limit in ("0", "-1"):
        yield back("$first", maxReconsumeTimes=limit)
    yield pull("%DLQ%CG", 2)
    for offset in ("-1", "99999999999"):
        yield back(offset)
    yield back("$first", "new-group", "1")
    for name in ("a b", ""):
        yield back("$first", name)
    yield back("$first", delay="100")
    yield back("$first", unitMode=None)
    yield back("$first", "unit-group", "1", unitMode="true")
    for topic in ("%RETRY%unit-group", "%DLQ%CG", "%RETRY%CG"):
        yield {"code": 351, "ext": {"topic": topic}}
    yield group("G0", retryQueueNums=0)
    yield back("$first", "G0", "1")
    for name, times in (("G2", 0), ("G3", -1)):
        yield group(name, retryMaxTimes=times)
        yield back("$first", name, "1")
        yield pull(f"%DLQ%{name}")
    yield group("G4", retryQueueNums=3)
    yield back("$first", "G4", "1")
    yield {"code": 351, "ext": {"topic": "%RETRY%G4"}}
    yield group("G5", consumeEnable=False)
    yield back("$first", "G5", "1")


def sends_to_retry_topics() -> Iterator[Step]:
    yield heartbeat("RG")
    retry = "%RETRY%RG"
    text = "UNIQ_KEY\1U1\2TAGS\1paid\2WAIT\1true\2RETRY_TOPIC\1T9\2ORIGIN_MESSAGE_ID\1OM\2"
    delayed = text + "DELAY\0011\2"
    yield send(retry, text)
    for times, limit in (("2", "16"), ("16", "16"), ("17", "16"), ("17", None), ("16", None)):
        yield send(retry, delayed, j=times, l=limit)
    yield send(retry, delayed, j="1", l="0", e="-1")
    yield send(retry, text, j="0", l="-1", e="-1")
    yield send(retry, text, j=None, l="-1")
    yield send("%RETRY%", text)
    yield send("%RETRY%never-seen", text)
    yield send("%DLQ%RG", text)
    yield queues(41)
    yield send(retry, delayed, j="1", l="16")
    yield queues(42)
    yield send(retry, delayed, j="1", l="16")
    batch = encode_batch([BatchEntry(b"b", b"UNIQ_KEY\1G\2", 0)]).decode("latin-1")
    yield send(retry, None, j="17", l="16", code=320, m="true", body=batch)


def questions() -> list[Step]:
    """Return every step, in order."""
    return [*delays(), *backs(), *sends_to_retry_topics()]


def place_of(answer: Command) -> int | None:
    """Return where the log holds what an answer speaks of, if it was stored."""
    identity = (answer.ext or {}).get("msgId")
    return None if identity is None else int(identity.split(",")[0][-16:], 16)


def answer_of(
    step: Step,
    answer: Command,
    shown: Command | None,
    places: dict[str, int],
    ids: dict[str, str],
) -> Step:
    """Return what an answer says, without what differs from broker to broker.

    `shown` is the record that was stored, if the step asks for it. Places and ids of messages that
    later steps speak of are noted under the step's name.
    """
    pulled = step["code"] == PULL and answer.code == 0
    body = answer.body if pulled else b"" if shown is None else shown.body
    seen = [decode_record(body, found[0]) for found in scan_records(body)]
    fields = dict(answer.ext or {})
    place = place_of(answer)
    if place is not None:
        if "name" in step:
            places[step["name"]] = place
            ids[fields["msgId"]] = step["name"]
        fields["msgId"] = "id"
    elif seen and "name" in step:
        places[step["name"]] = seen[0].commit_log_offset
    return {
        "code": answer.code,
        "remark": (answer.remark or "").partition(", java.base")[0],
        "ext": dict(sorted(fields.items())),
        "records": [_facts(record, ids) for record in seen],
        "body": "" if step["code"] == PULL else answer.body.decode("latin-1"),
    }


def _facts(record: Record, ids: dict[str, str]) -> Step:
    properties = decode_properties(record.property_bytes)
    origin = properties.get("ORIGIN_MESSAGE_ID", "")
    if len(origin) == ID_DIGITS:
        properties["ORIGIN_MESSAGE_ID"] = ids.get(origin, "another")
    return {
        "topic": record.topic.decode(),
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "body": record.body.decode("latin-1"),
        "properties": dict(sorted(properties.items())),
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "born": record.born_timestamp_ms,
        "tries": record.reconsume_times,
        "prepared": record.prepared_transaction_offset,
    }


class Asking:
    """A connection that asks one thing after another."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._reader = FrameReader()
        self._frames: list[Command] = []
        self._opaque = 0

    def close(self) -> None:
        self._socket.close()

    def ask(
        self, code: int, ext: dict[str, str], body: bytes = b"", version: int = VERSION
    ) -> Command:
        self._opaque += 1
        request = Command(code, self._opaque, ext_fields=ext, body=body, version=version)
        self._socket.sendall(request.encode())
        while True:
            while not self._frames:
                data = self._socket.recv(1 << 20)
                assert data, "the broker hung up"
                self._frames += [read_command(frame) for frame in self._reader.feed(data)]
            answer = self._frames.pop(0)
            if answer.is_response and answer.opaque == self._opaque:
                return answer


def main() -> None:
    asking = Asking(sys.argv[1])
    places: dict[str, int] = {}
    ids: dict[str, str] = {}
    for step in questions():
        ext = {key: str(places.get(value, value)) for key, value in step["ext"].items()}
        body = step.get("body", "").encode("latin-1")
        answer = asking.ask(step["code"], ext, body, step.get("version", VERSION))
        place = place_of(answer)
        wanted = place is not None and step.get("show")
        shown = asking.ask(VIEW, {"offset": str(place)}) if wanted else None
        said = answer_of(step, answer, shown, places, ids)
        print(json.dumps({"step": step, "answer": said}, sort_keys=True))
    asking.close()


if __name__ == "__main__":
    main()
