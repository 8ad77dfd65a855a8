"""A call that cannot work as it was made: invalid arguments, a closed client, an unknown name.

Most are raised before anything is sent to a server; each class says what it means.
"""

from pocketmq.errors.tree import MQError

_LONGEST_SHOWN = 140  # a name one over the limit of topics is still shown whole


class InvalidInput(MQError, ValueError):
    """An invalid argument: the call can never work, whatever the cluster's state."""


class NameInvalid(InvalidInput):
    """A topic or group name that RocketMQ does not accept."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        self.kind = kind
        self.name = name
        self.reason = reason
        shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…"
        super().__init__(f"invalid {kind} name {shown!r}: {reason}")


class AllocationInputInvalid(InvalidInput):
    """An allocation without a member id, queues or members, or one its strategy cannot compute.

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
        super().__init__(f"unknown allocation strategy {name!r}; {hint}")


class AttributeRefused(InvalidInput):
    """An invalid change of a topic's or group's attributes; the reason is Java's."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"invalid attribute change: {reason}")


class AttributeUnsupported(AttributeRefused):
    """A valid attribute that asks for what this broker lacks."""


class MappingRefused(InvalidInput):
    """A mapping of a static topic that does not follow from the one before."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"invalid mapping of a static topic: {reason}")


class FilterSyntaxError(InvalidInput):
    """A tag or SQL92 expression that does not parse; `column` counts from 1."""

    def __init__(self, expression: str, column: int, reason: str) -> None:
        self.expression = expression
        self.column = column
        self.reason = reason
        shown, place = _around(expression, column - 1)
        pointer = " " * place + "^"
        super().__init__(
            f"invalid filter expression, column {column}: {reason}\n  {shown}\n  {pointer}"
        )


def _around(expression: str, place: int) -> tuple[str, int]:
    """Return the expression near a place on one line, and where the place is on it."""
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
        super().__init__(f"cannot compare the property value {value!r} as {wanted}")


class ClientClosed(MQError):
    """A client was used before it started or after it stopped. Nothing was sent."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        super().__init__(
            f"{client_id} is not running; use it inside `with`, or between start() and close(). "
            "A closed client cannot be restarted: create a new one"
        )


class ClientForked(MQError):
    """A client was used in a process forked from the one it runs in. Nothing was sent.

    Its connections belong to the parent: two processes writing to one socket would garble both.
    """

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        super().__init__(
            f"client {client_id!r} belongs to the parent process and cannot be used in this fork; "
            "create a new client after the fork"
        )


class WouldBlockLoop(MQError):
    """A blocking call on the thread that would have to carry it out. Nothing was sent."""

    def __init__(self, loop: str) -> None:
        self.loop = loop
        super().__init__(
            f"a blocking call on the event loop's own thread ({loop!r}) would deadlock; "
            "use pocketmq.aio in coroutines, or move the call to a plain function (def)"
        )


class WrongLoop(MQError):
    """A client for asyncio was used on another event loop than its own. Nothing was sent."""

    def __init__(self, client: str) -> None:
        self.client = client
        super().__init__(
            f"{client} was started on another event loop; start, use and close it inside one "
            "asyncio.run(), or use the blocking clients of pocketmq in threads"
        )


class GroupTaken(InvalidInput):
    """The client already has a member in this group; a client id stands for one member."""

    def __init__(self, kind: str, group: str, client_id: str) -> None:
        self.kind = kind
        self.group = group
        self.client_id = client_id
        super().__init__(
            f"client {client_id!r} already has a {kind} in group {group!r}; "
            "close that one first, or use another group or instance name"
        )


class Absent(MQError):
    """A cluster, broker, group, message or user with this name does not exist."""

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        self.hint = hint
        super().__init__(f"no {kind} {name!r} found" + (f"; {hint}" if hint else ""))
