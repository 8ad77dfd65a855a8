"""Failures on this machine: a server that cannot start or exited, a store that cannot be used."""

from pocketmq.errors.tree import MQError


class StoreError(MQError):
    """Anything wrong with a data directory."""


class StoreFull(StoreError):
    """The disk has no room for a further file; room made, the store goes on."""

    retryable = True

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        super().__init__(f"no room on disk for a further file of {wanted} bytes; delete something")


class StoreCorrupt(StoreError):
    """Files contradict each other in a way that recovery cannot mend."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StoreFailed(StoreError):
    """The operating system refuses to read, write or sync a file of the store.

    After a failed sync nobody knows what reached the device: the store takes no more messages
    until it has been opened again.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the store's files cannot be used: {reason}; check the disk and restart")


class StoreInUse(StoreError):
    """Another process works on the same directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        super().__init__(
            f"{directory} is in use by another broker; stop it or choose another directory"
        )


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
