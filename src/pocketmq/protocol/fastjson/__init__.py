"""fastjson's dialect of JSON, which every RocketMQ body but a few is written in.

It differs from JSON where RocketMQ depends on it: maps may have bare integers or whole objects as
keys, a repeated object may be a reference, doubles have Java's notation. `loads` reads what any
release writes; `dumps` writes what every release reads. Nothing here knows a body's type.
"""

from pocketmq.protocol.fastjson.reader import loads, nests_deeper
from pocketmq.protocol.fastjson.writer import MAX_DEPTH, ObjectKey, dumps, quote

__all__ = ["MAX_DEPTH", "ObjectKey", "dumps", "loads", "nests_deeper", "quote"]
