"""Message filters: subscriptions by tag, and RocketMQ's SQL92 over message properties."""

from pocketmq.protocol.filter.sql import MAX_EXPRESSION_LENGTH, MAX_NESTING, SqlFilter, compile_sql
from pocketmq.protocol.filter.subscribe import TagFilter, is_tag_kind, subscribe, tag_filter

__all__ = [
    "MAX_EXPRESSION_LENGTH",
    "MAX_NESTING",
    "SqlFilter",
    "TagFilter",
    "compile_sql",
    "is_tag_kind",
    "subscribe",
    "tag_filter",
]
