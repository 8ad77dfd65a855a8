"""What sending works with: drafts, where they went, redirects, and the queues sends may go to.

Plain values, independent of the broker's state.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model import DataVersion, TopicConfig, property_names
from pocketmq.net import Connection
from pocketmq.protocol.hosts import V4_SIZE, encode_host
from pocketmq.store import QueueIndex


class Draft(msgspec.Struct, kw_only=True):
    """A message on its way into the store; a redirect may change anything about it."""

    topic: str
    queue_id: int
    body: bytes
    properties: dict[str, str]
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    tag: int | None = None
    """What the queue keeps beside the message; None for the hash of its tag."""
    recall_handle: str | None = None
    """The handle by which the sender can recall the message."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Where a message went: its queue, its offset there, and its position in the commit log."""

    queue: QueueIndex
    offset: int
    position: int


Redirect: TypeAlias = Callable[[Draft], None]
"""Changes a draft, or raises `ServerError` with the code and remark the sender gets."""
REDIRECTING = (
    property_names.TRANSACTION_PREPARED,
    property_names.DELAY_LEVEL,
    property_names.TIMER_DELAY_SEC,
    property_names.TIMER_DELAY_MS,
    property_names.TIMER_DELIVER_MS,
)
"""Properties that send a message elsewhere first, in the order in which they are applied."""


class DelayedSends(msgspec.Struct, frozen=True):
    """What a broker with delay levels needs to take delayed messages without a draft."""

    delays_ms: tuple[int, ...]
    """How long messages wait at each level, from the first on."""
    wake_at: Callable[[int, int], None]
    """Called with the time at which a new message is due, and the time now."""


class SendTarget(msgspec.Struct, frozen=True, gc=False):
    """A queue messages may be sent to, as of one version of the topics."""

    version: DataVersion
    config: TopicConfig
    queue: QueueIndex
    topic: bytes
    sys_flag: int  # bits every message of the topic gets
    retry: bool
    batches: bool = False  # whether a batch is stored as one record


BORN_HOST = "born_host"
"""Where a connection keeps its address as records have it, once `born_host` was asked for it."""
_MAPPED = b"\0" * 10 + b"\xff\xff"
_UNKNOWN = bytes(V4_SIZE)


def born_host(connection: Connection) -> bytes:
    """Return a connection's address, 8 bytes for IPv4, 20 for IPv6."""
    try:
        host: bytes = connection.context[BORN_HOST]
    except KeyError:
        host = connection.context[BORN_HOST] = encode_peer(connection.remote_address)
    return host


def encode_peer(address: str) -> bytes:
    """Encode what a socket calls its peer; IPv4 inside IPv6 becomes IPv4, as in Java."""
    ip, _, port = address.rpartition(":")
    ip = ip.partition("%")[0].removesuffix("]")  # a zone has no place in a record
    text = f"{ip}]:{port}" if ip.startswith("[") else f"{ip}:{port}"
    try:
        host = encode_host(text)
    except InvalidInput:
        return _UNKNOWN
    if host.startswith(_MAPPED):
        return host[len(_MAPPED) :]
    return host
