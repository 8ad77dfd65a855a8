"""Message filters: subscriptions by tag, and RocketMQ's SQL92 over message properties."""

from pocketmq.protocol.filter.sql import (
    MAX_EXPRESSION_LENGTH,
    MAX_NESTING,
    Filter,
    compile_sql,
)
from pocketmq.protocol.filter.subscribe import is_tag_kind, subscribe
from pocketmq.protocol.filter.tags import TagFilter, tag_filter

__all__ = [
    "MAX_EXPRESSION_LENGTH",
    "MAX_NESTING",
    "Filter",
    "TagFilter",
    "compile_sql",
    "is_tag_kind",
    "subscribe",
    "tag_filter",
]
