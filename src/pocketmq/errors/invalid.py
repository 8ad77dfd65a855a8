"""What the caller handed over is wrong, and nothing was sent."""

from pocketmq.errors.tree import MQError


class InvalidInput(MQError, ValueError):
    """An argument that can never work, whatever the cluster's state."""


class NameInvalid(InvalidInput):
    """A topic or group name RocketMQ would refuse."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        self.kind = kind
        self.name = name
        self.reason = reason
        super().__init__(f"the {kind} name {name!r} is not valid: {reason}")


class AllocationInputInvalid(InvalidInput):
    """An allocation was asked for without a member id, queues or members.

    Java throws here and keeps what the member owns; so do our consumers.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"cannot allocate queues: {reason}")


class FilterSyntaxError(InvalidInput):
    """A tag or SQL92 expression that does not parse; `column` counts from 1."""

    def __init__(self, expression: str, column: int, reason: str) -> None:
        self.expression = expression
        self.column = column
        self.reason = reason
        pointer = " " * (column - 1) + "^"
        super().__init__(f"column {column}: {reason}\n  {expression}\n  {pointer}")
