"""Bit fields of the wire: message system flags, pull flags, topic permissions."""

from enum import IntEnum, IntFlag


class SysFlag(IntFlag):
    """Bits of a message's system flag."""

    COMPRESSED = 1
    MULTI_TAGS = 2
    PREPARED = 4
    COMMITTED = 8
    ROLLED_BACK = 12
    BORN_HOST_V6 = 16
    STORE_HOST_V6 = 32
    NEED_UNWRAP = 64
    INNER_BATCH = 128
    LZ4 = 256
    ZSTD = 512
    ZLIB = 768


TRANSACTION_MASK = 12
COMPRESSION_MASK = 0x700


class TransactionState(IntEnum):
    """The transaction bits of a system flag, as END_TRANSACTION carries them.

    A local transaction, or a check of one, comes to COMMIT, ROLLBACK or UNKNOWN.
    """

    UNKNOWN = 0
    NONE = 0  # of a message without a transaction
    PREPARED = 4
    COMMIT = 8
    ROLLBACK = 12


class PullFlag(IntFlag):
    """Bits of a pull request's system flag."""

    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


class Permission(IntFlag):
    """What a topic's queues may be used for."""

    INHERIT = 1  # a template that new topics may copy
    WRITE = 2
    READ = 4
    PRIORITY = 8

    def readable(self) -> bool:
        """Tell whether consumers may read."""
        return bool(self & Permission.READ)

    def writable(self) -> bool:
        """Tell whether producers may write."""
        return bool(self & Permission.WRITE)

    def text(self) -> str:
        """Give RocketMQ's three letters, such as `RW-`."""
        return "".join(
            letter if self & bit else "-"
            for bit, letter in (
                (Permission.READ, "R"),
                (Permission.WRITE, "W"),
                (Permission.INHERIT, "X"),
            )
        )
