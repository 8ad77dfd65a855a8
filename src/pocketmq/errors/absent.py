"""Something an operator named is not there."""

from pocketmq.errors.tree import MQError


class Absent(MQError):
    """A cluster, broker, group, message or user that was named does not exist."""

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        self.kind = kind
        self.name = name
        self.hint = hint
        super().__init__(f"there is no {kind} {name!r}" + (f"; {hint}" if hint else ""))
