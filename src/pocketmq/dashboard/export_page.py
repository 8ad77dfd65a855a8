"""`/export`: the messages of a topic as a file, newest first, as far as a search would go.

CSV is for spreadsheets, JSON lines for programs. A spreadsheet takes a cell that starts with
`=`, `+`, `-` or `@` for a formula, which could send data elsewhere; such cells get an
apostrophe in front, which makes them text. JSON lines hold messages as they are.
"""

import base64
import csv
import io
import logging
import re
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from pocketmq.dashboard.browsing.newest_first import Position
from pocketmq.dashboard.browsing.reader import ContentFilter, TopicReader
from pocketmq.dashboard.desk import CLUSTER, Desks
from pocketmq.dashboard.formatting import time_ms
from pocketmq.dashboard.parts import visitor
from pocketmq.errors import InvalidInput, MQError, RouteNotFound
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.dashboard.actions")

MEDIA_TYPES = {"csv": "text/csv", "jsonl": "application/jsonl"}
COLUMNS = (
    "stored", "topic", "broker", "queue", "offset", "message_id", "tag", "keys", "properties",
    "retries", "body", "encoding",
)  # fmt: skip
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")


def row_of(message: ReceivedMessage) -> dict[str, Any]:
    """Return a message by columns; `encoding` tells whether the body is text or base64."""
    body, encoding = _body(message)
    return {
        "stored": _time(message.store_timestamp_ms),
        "topic": message.topic,
        "broker": message.broker_name,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "message_id": message.message_id,
        "tag": message.tag or "",
        "keys": list(message.keys),
        "properties": message.user_properties,
        "retries": message.reconsume_times,
        "body": body,
        "encoding": encoding,
    }


def csv_text(messages: Iterable[ReceivedMessage], *, header: bool) -> str:
    """Return messages as lines of CSV, after the names of the columns if wanted."""
    text = io.StringIO()
    lines = csv.writer(text)
    if header:
        lines.writerow(COLUMNS)
    for message in messages:
        lines.writerow([_cell(value) for value in row_of(message).values()])
    return text.getvalue()


def json_lines(messages: Iterable[ReceivedMessage]) -> bytes:
    """Return messages as lines of JSON."""
    return b"".join(msgspec.json.encode(row_of(each)) + b"\n" for each in messages)


def last_line(form: str, written: int) -> bytes:
    """Return the last line of a file that ends before the last message."""
    text = f"only the newest {written:,} messages; older ones are left out"
    if form == "csv":
        line = io.StringIO()
        csv.writer(line).writerow([text, *[""] * (len(COLUMNS) - 1)])
        return line.getvalue().encode()
    return msgspec.json.encode({"truncated": text}) + b"\n"


def harmless(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in _FORMULA or text.lstrip()[:1] in _FORMULA else text


def _cell(value: object) -> str:
    if isinstance(value, list):
        return harmless(" ".join(value))
    if isinstance(value, dict):
        return harmless(msgspec.json.encode(value).decode())
    return harmless(str(value))


def _body(message: ReceivedMessage) -> tuple[str, str]:
    try:
        body = message.body
    except (MQError, InvalidInput) as error:
        return str(error), "unreadable"
    try:
        return body.decode(), "text"
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), "base64"


def _time(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # a peer may send anything
        return ""


PATH = "/export"
MOST = 100_000
"""Messages of one file."""
_PAGE = 200


def link_to_export(
    form: str, topic: str, text: str = "", begin: str = "", end: str = "", *, cluster: str = ""
) -> str:
    """Return the address of a file; times are texts of a form."""
    query = {"format": form, "topic": topic, "text": text, "from": begin, "to": end}
    given = {name: value for name, value in query.items() if value}
    # Also if it is empty: the first cluster, whatever has been chosen in another window.
    return f"{PATH}?{urlencode({**given, CLUSTER: cluster})}"


def add_export(app: FastAPI, desks: Desks) -> None:
    """Add the address that files are loaded from."""

    async def export(request: Request) -> Response:
        desk, query = desks.named_by(request), request.query_params
        if desk is None:
            return PlainTextResponse("there is no such cluster here", 404)
        form, topic = query.get("format", ""), query.get("topic", "")
        if form not in MEDIA_TYPES:
            return PlainTextResponse(f"the format must be one of {', '.join(MEDIA_TYPES)}", 400)
        try:
            wanted = ContentFilter.of(query.get("text", ""))
            times = time_ms(query.get("from", "")), time_ms(query.get("to", "")) or None
            reader = TopicReader(desk.admin, topic)
            bounds = await reader.bounds(*times)
        except InvalidInput as error:
            return PlainTextResponse(str(error), 400)
        except RouteNotFound:
            return PlainTextResponse(f"there is no topic {topic!r}", 404)
        except MQError as error:
            return PlainTextResponse(str(error), 503)
        if bounds.missing:  # a file that lacks a broker would not show it
            return PlainTextResponse("No response from " + "; ".join(bounds.missing), 503)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", topic)[:100]
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        lines = _lines(reader, bounds.position, wanted, form)
        logger.info("messages exported: user=%s topic=%r format=%s", visitor(request), topic, form)
        return StreamingResponse(lines, media_type=MEDIA_TYPES[form], headers=headers)

    app.add_api_route(PATH, export, response_class=Response)


async def _lines(
    reader: TopicReader, position: Position, wanted: ContentFilter, form: str
) -> AsyncIterator[bytes]:
    """Yield a file page by page; a broker that stops responding ends it, and the download fails."""
    written = 0
    if form == "csv":
        yield csv_text([], header=True).encode()
    while position and written < MOST:
        page = await reader.page(position, wanted, min(_PAGE, MOST - written))
        if page.missing:
            raise ConnectionError(f"no response from {page.missing[0]}")
        position, written = page.older, written + len(page.messages)
        as_csv = form == "csv"
        found = page.messages
        yield csv_text(found, header=False).encode() if as_csv else json_lines(found)
    if position:
        yield last_line(form, written)
