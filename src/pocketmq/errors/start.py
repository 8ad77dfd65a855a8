"""A server or a whole cluster on this machine could not start, or a part of it ended."""

from pocketmq.errors.tree import MQError


class CannotStart(MQError):
    """A part cannot start where and how it was told to; nothing of it is left running."""

    def __init__(self, part: str, reason: str) -> None:
        self.part = part
        self.reason = reason
        super().__init__(f"{part} cannot start: {reason}")


class PartEnded(MQError):
    """A broker process ended by itself while somebody waited for it."""

    def __init__(self, part: str, how: str) -> None:
        self.part = part
        self.how = how
        super().__init__(f"{part} {how}; its last lines on stderr may say why")
