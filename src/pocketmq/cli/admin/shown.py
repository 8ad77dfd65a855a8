"""What a command shows: lines for people, a value for programs, and which servers are missing.

Most lines are mqadmin's, byte for byte, so they are laid out by Java's patterns (`row`), not by
rich; only commands that mqadmin does not have use `table_lines`.
"""

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from pocketmq.admin.gathered import Gathered, Missing
from pocketmq.cli.output import TableColumn, TextPage
from pocketmq.errors import MQError, ServerError
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage


class Shown(msgspec.Struct, frozen=True):
    """The outcome of a command.

    `problems` are printed on stderr, and make the exit code 6: partly done.
    """

    lines: list[str]
    data: Any
    problems: tuple[str, ...] = ()
    more: AsyncIterator["Shown"] | None = None
    """What follows, shown as it arrives; as JSON, one line per item of each `data`."""
    code: int = 0
    """The exit code, if there are no problems."""


def told(missing: Iterable[Missing]) -> tuple[str, ...]:
    """Return the problems to report for servers that did not answer."""
    return tuple(
        f"{'error from' if isinstance(each.error, ServerError) else 'no response from'} {each}"
        for each in missing
    )


def changed(done: Gathered[None], line: str, **data: object) -> Shown:
    """Return the outcome of a change: `line` for each broker, its address put in for `{}`.

    Raises the first error if no broker answered.
    """
    places = [each.place for each in done.some()]
    lines = [line.format(place.address) for place in places]
    return Shown(lines, {**data, "brokers": places}, told(done.missing))


def row(pattern: str, *values: object) -> str:
    """Return a line laid out by a pattern such as `%-20s  %4d`, the same as Java's."""
    return pattern % values


def table_lines(columns: Sequence[TableColumn], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table that mqadmin does not have."""
    page = TextPage(styled=False)
    page.table(columns, rows)
    return page.lines()


def front(text: str, size: int) -> str:
    """Return the start of a text that is too long for its column."""
    return text[:size]


def when(time_ms: int) -> str:
    """Return a time as `2026-01-31 12:00:00`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))


def when_exactly(time_ms: int) -> str:
    """Return a time as `2026-01-31 12:00:00,123`."""
    return f"{when(time_ms)},{time_ms % 1000:03d}"


def jsonable(value: Any) -> Any:
    """Return a value as JSON types; queues that are keys become fields of their entries."""
    if isinstance(value, ReceivedMessage):
        return message_value(value)
    if isinstance(value, MQError):
        return str(value)
    if isinstance(value, Enum):
        return value.name if isinstance(value, int) else value.value
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: jsonable(item) for name, item in fields if name != "extra" or item}
    if isinstance(value, Mapping):
        if any(isinstance(key, MessageQueue) for key in value):
            return [jsonable(key) | _fields(jsonable(item)) for key, item in value.items()]
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return value


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def message_value(message: ReceivedMessage) -> dict[str, Any]:
    """Return a message's fields for JSON; a body that is not text is in `body_base64`."""
    body = message.body
    try:
        content = {"body": body.decode()}
    except UnicodeDecodeError:
        import base64

        content = {"body_base64": base64.b64encode(body).decode()}
    return content | {
        "topic": message.topic,
        "tag": message.tag,
        "keys": message.keys,
        "message_id": message.message_id,
        "offset_message_id": message.offset_message_id,
        "broker": message.broker_name,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "commit_log_offset": message.commit_log_offset,
        "reconsume_times": message.reconsume_times,
        "born": message.born_timestamp,
        "stored": message.store_timestamp,
        "born_host": message.born_host,
        "store_host": message.store_host,
        "properties": dict(message.properties),
    }
