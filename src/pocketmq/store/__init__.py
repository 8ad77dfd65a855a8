"""Keeping messages: a commit log, an index for each queue, one SQLite file for what is small."""

from pocketmq.store.appending import Appended
from pocketmq.store.flusher import Flusher
from pocketmq.store.options import StoreOptions
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.reading import QueueRead, ReadStatus
from pocketmq.store.recovery import Damage, Recovered, TagRule
from pocketmq.store.store import MessageStore

__all__ = [
    "Appended",
    "Damage",
    "Flusher",
    "MessageStore",
    "QueueIndex",
    "QueueRead",
    "ReadStatus",
    "Recovered",
    "StoreOptions",
    "TagRule",
]
