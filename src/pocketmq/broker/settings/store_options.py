"""From a broker's settings to what its store keeps, and for how long."""

import os

from pocketmq.broker.config import BrokerConfig
from pocketmq.store import StoreOptions


def store_options(config: BrokerConfig, *, in_memory: bool) -> StoreOptions:
    """Give the store's options that the settings stand for."""
    kept = _share_of_memory(config) if in_memory else 0
    return StoreOptions(
        segment_size=config.mapped_file_size_commit_log,
        sync=config.sync_flush,
        retention=config.file_reserved_time * 3600.0,
        retention_bytes=config.file_reserved_bytes or kept,
        delete_hours=config.delete_hours,
        disk_clean_ratio=config.disk_max_used_space_ratio / 100,
        disk_force_ratio=config.disk_space_clean_forcibly_ratio / 100,
        disk_full_ratio=config.disk_space_warning_level_ratio / 100,
    )


def _share_of_memory(config: BrokerConfig) -> int:
    """Give how much a broker without a disk keeps: the oldest messages make room for new ones."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(memory // 4, 2 * config.mapped_file_size_commit_log)
