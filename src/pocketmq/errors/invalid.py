"""What the caller handed over is wrong, and nothing was sent."""

from pocketmq.errors.tree import MQError

_LONGEST_SHOWN = 140  # a name one over the limit of topics is still shown whole


class InvalidInput(MQError, ValueError):
    """An argument that can never work, whatever the cluster's state."""


class NameInvalid(InvalidInput):
    """A topic or group name RocketMQ would refuse."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        self.kind = kind
        self.name = name
        self.reason = reason
        shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…"
        super().__init__(f"the {kind} name {shown!r} is not valid: {reason}")


class AllocationInputInvalid(InvalidInput):
    """An allocation was asked for without a member id, queues or members.

    Java throws here and keeps what the member owns; so do our consumers.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"cannot allocate queues: {reason}")


class StrategyUnknown(InvalidInput):
    """No allocation strategy has this name; `nearest` is the known name most like it, if any."""

    def __init__(self, name: str, known: tuple[str, ...], nearest: str | None) -> None:
        self.name = name
        self.known = known
        self.nearest = nearest
        hint = f"did you mean {nearest}?" if nearest else f"choose from {', '.join(known)}"
        super().__init__(f"there is no allocation strategy {name!r}: {hint}")


class AttributeRefused(InvalidInput):
    """A change of a topic's or group's attributes that makes no sense; the reason is Java's."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the attributes cannot be changed so: {reason}")


class FilterSyntaxError(InvalidInput):
    """A tag or SQL92 expression that does not parse; `column` counts from 1."""

    def __init__(self, expression: str, column: int, reason: str) -> None:
        self.expression = expression
        self.column = column
        self.reason = reason
        shown, place = _around(expression, column - 1)
        pointer = " " * place + "^"
        super().__init__(f"column {column}: {reason}\n  {shown}\n  {pointer}")


def _around(expression: str, place: int) -> tuple[str, int]:
    """Give the expression near a place on one line, and where the place is on it."""
    start = max(0, place - _LONGEST_SHOWN // 2)
    near = expression[start : start + _LONGEST_SHOWN]
    line = "".join(c if c.isprintable() else " " for c in near)  # a line end would move the pointer
    return (f"…{line}", place - start + 1) if start else (line, place)


class FilterUndecided(MQError):
    """A message's property cannot be compared as an SQL92 expression asks.

    Brokers drop such a message for that consumer, whatever the rest of the expression says.
    """

    def __init__(self, value: str, wanted: str) -> None:
        self.value = value
        self.wanted = wanted
        super().__init__(f"the filter compares {value!r} as {wanted}, which it is not")
