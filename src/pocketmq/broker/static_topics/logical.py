"""A logical queue that this broker leads, and requests rewritten for a physical one."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.model.topics import MappedRange, TopicMappingDetail
from pocketmq.net import Connection
from pocketmq.protocol import Command


class LogicalQueue(NamedTuple):
    """A queue of a static topic, with its ranges; this broker leads the last one."""

    topic: str
    number: int
    broker: str
    """The name of this broker."""
    parts: tuple[MappedRange, ...]

    @property
    def leader(self) -> MappedRange:
        """The range that takes messages."""
        return self.parts[-1]

    def is_here(self, part: MappedRange) -> bool:
        """Return whether a range lies on this broker."""
        return part.bname == self.broker


LogicalHandler: TypeAlias = Callable[
    [BrokerState, Connection, Command, LogicalQueue, Handler], Answer
]
"""Answers a request for a logical queue, with the help of what answers it for a physical one."""


def find_led(detail: TopicMappingDetail, number: int, *, choose: bool) -> LogicalQueue | None:
    """Return a logical queue that this broker leads; a negative one may be chosen by the broker."""
    if number < 0 and choose:
        led = (each for each, parts in detail.hosted_queues.items() if _leads(detail, parts))
        number = next(led, number)
    parts = detail.hosted_queues.get(number)
    if parts is None or not _leads(detail, parts):
        return None
    return LogicalQueue(detail.topic or "", number, detail.bname or "", tuple(parts))


def _leads(detail: TopicMappingDetail, parts: list[MappedRange]) -> bool:
    return bool(parts) and parts[-1].bname == detail.bname


def rewritten(request: Command, fields: Mapping[str, object]) -> Command:
    """Return a request with other fields, which names a physical queue."""
    changed = {name: str(value) for name, value in fields.items()}
    return msgspec.structs.replace(request, ext_fields=request.ext | changed | {"lo": "false"})
