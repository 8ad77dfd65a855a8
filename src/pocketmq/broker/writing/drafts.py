"""What sending works with: drafts, where they went, redirects, and the queues sends may go to.

Plain values. Knows neither the store's state nor the broker's.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from pocketmq.model import properties as names
from pocketmq.model.data_version import DataVersion
from pocketmq.model.topic_config import TopicConfig
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
    """What the sender is given to take the message back."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """Where a message went: its queue, its offset there, and its position in the commit log."""

    queue: QueueIndex
    offset: int
    position: int


Redirect: TypeAlias = Callable[[Draft], None]
"""Changes a draft, or raises `ServerError` with the code and remark the sender gets."""
REDIRECTING = (
    names.TRANSACTION_PREPARED,
    names.DELAY_LEVEL,
    names.TIMER_DELAY_SEC,
    names.TIMER_DELAY_MS,
    names.TIMER_DELIVER_MS,
)
"""Properties that send a message elsewhere first, in the order in which they are looked at."""


class Target(msgspec.Struct, frozen=True, gc=False):
    """A queue messages may be sent to, as of one version of the topics."""

    version: DataVersion
    config: TopicConfig
    queue: QueueIndex
    topic: bytes
    sys_flag: int  # bits every message of the topic gets
    retry: bool
