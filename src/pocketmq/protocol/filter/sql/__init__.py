"""RocketMQ's SQL92: text to tokens to tree to closures, each in a file of its own."""

from pocketmq.protocol.filter.sql.filter import SqlFilter, compile_sql
from pocketmq.protocol.filter.sql.parser import MAX_EXPRESSION_LENGTH, MAX_NESTING

__all__ = ["MAX_EXPRESSION_LENGTH", "MAX_NESTING", "SqlFilter", "compile_sql"]
