"""Options of a store."""

import msgspec

from pocketmq.errors import InvalidInput

SMALLEST_SEGMENT = 4096


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes, safety and retention of one broker's store; `InvalidInput` if a size is too small."""

    segment_size: int = 128 * 1024 * 1024
    """Bytes of one commit-log file; the unit of deletion."""

    sync: bool = False
    """Whether a message is acknowledged only once it is on the device; see `durability`."""

    sync_interval: float = 0.5
    """Seconds between flushes to the device when `sync` is off."""

    checkpoint_interval: float = 10.0
    """Seconds between checkpoints while messages arrive."""

    checkpoint_bytes: int = 256 * 1024 * 1024
    """Bytes after which a checkpoint is made earlier."""

    retention: float = 72 * 3600.0
    """Seconds a message is kept."""

    retention_bytes: int = 0
    """Bytes the commit log may hold; 0 for no limit but the disk."""

    delete_hours: tuple[int, ...] = (4,)
    """Hours of the day at which files older than that are deleted; empty for any."""

    disk_clean_ratio: float = 0.75
    """Part of the disk in use from which old files are deleted at any hour."""

    disk_force_ratio: float = 0.85
    """Part of the disk in use from which files are deleted whatever their age."""

    disk_full_ratio: float = 0.90
    """Part of the disk in use from which new messages are refused."""

    def __post_init__(self) -> None:
        if self.segment_size < SMALLEST_SEGMENT:
            raise InvalidInput(
                f"segment_size must be at least {SMALLEST_SEGMENT} bytes, not {self.segment_size}"
            )
