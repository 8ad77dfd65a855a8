"""Failures on this machine: a server that cannot start or exited, a store that cannot be used."""

from pocketmq.errors.tree import MQError


class StoreError(MQError):
    """Anything wrong with a data directory."""


class StoreFull(StoreError):
    """The disk has no space for another file; the store resumes when space is freed."""

    retryable = True

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        super().__init__(f"disk full: no space for another file of {wanted} bytes; free disk space")


class StoreCorrupt(StoreError):
    """Files contradict each other in a way that recovery cannot repair."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StoreFailed(StoreError):
    """The operating system failed to read, write or sync a file of the store.

    After a failed sync it is unknown what reached the device: the store takes no more messages
    until it has been opened again.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"store I/O failed: {reason}; check the disk and restart the broker")


class StoreInUse(StoreError):
    """Another process uses the same data directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        super().__init__(
            f"data directory {directory} is in use by another broker; stop it or choose another one"
        )


class CannotStart(MQError):
    """A server or cluster cannot start with these settings; nothing of it is left running."""

    def __init__(self, part: str, reason: str) -> None:
        self.part = part
        self.reason = reason
        super().__init__(f"{part} cannot start: {reason}")


class PartEnded(MQError):
    """A broker process exited by itself while a caller waited for it."""

    def __init__(self, part: str, how: str) -> None:
        self.part = part
        self.how = how
        super().__init__(f"{part} {how}; see its last lines on stderr")
