"""The delay levels: RocketMQ's classic way to hold a message back, and its retry back-off."""

DELAY_LEVELS: tuple[float, ...] = (
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
"""Seconds of level 1, 2, … 18, as brokers have them unless configured otherwise."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_delay_levels(text: str) -> tuple[float, ...]:
    """Read a broker's `messageDelayLevel`, such as `1s 5s 10m 2h`."""
    return tuple(int(part[:-1]) * _UNITS[part[-1]] for part in text.split())


def delay_of(level: int, levels: tuple[float, ...] = DELAY_LEVELS) -> float:
    """Give a level's delay in seconds. Levels past the last count as the last, none as 0."""
    if level <= 0:
        return 0.0
    return levels[min(level, len(levels)) - 1]


def retry_level(reconsume_times: int) -> int:
    """Give the level at which a failed message comes back when nobody chose one."""
    return 3 + reconsume_times
