"""Messages as files: CSV for spreadsheets, JSON lines for programs. Pure.

A spreadsheet takes a cell that starts with `=`, `+`, `-` or `@` for a formula, which could send
data elsewhere; such cells get an apostrophe in front, which makes them text. JSON lines hold
messages as they are.
"""

import base64
import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from pocketmq.errors import InvalidInput, MQError
from pocketmq.protocol import ReceivedMessage

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
