"""The delay levels: RocketMQ's classic way to hold a message back, and its retry back-off."""

from pocketmq.errors import InvalidInput

DELAY_LEVELS: tuple[float, ...] = (
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
"""Seconds of level 1, 2, … 18, as brokers have them unless configured otherwise."""

MOST_LEVELS = 128
"""Each level has a queue of its own."""
LONGEST_DELAY = 36_500 * 86_400
"""Seconds a level may have: a moment that far ahead still fits wherever a time is kept."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_DIGITS = 10


def parse_delay_levels(text: str) -> tuple[float, ...]:
    """Read a broker's `messageDelayLevel`, such as `1s 5s 10m 2h`; units are s, m, h and d.

    Raises `InvalidInput` for anything else, for no level at all, and for too many.
    """
    parts = text.split()
    if not 0 < len(parts) <= MOST_LEVELS:
        raise InvalidInput(
            f"messageDelayLevel has {len(parts)} levels, from 1 to {MOST_LEVELS} are possible"
        )
    return tuple([_seconds(part) for part in parts])


def _seconds(part: str) -> float:
    number, unit = part[:-1], _UNITS.get(part[-1])
    if unit is None or not (number.isascii() and number.isdecimal()):
        raise InvalidInput(
            f"messageDelayLevel: {part[:40]!r} is no delay; "
            "write a number and s, m, h or d, as in 10s"
        )
    if len(number) > _MOST_DIGITS or int(number) * unit > LONGEST_DELAY:
        raise InvalidInput(f"messageDelayLevel: {part[:40]!r} is more than a hundred years")
    return float(int(number) * unit)


def delay_of(level: int, levels: tuple[float, ...] = DELAY_LEVELS) -> float:
    """Give a level's delay in seconds. Levels past the last count as the last, none as 0."""
    if level <= 0:
        return 0.0
    return levels[min(level, len(levels)) - 1]


def retry_level(reconsume_times: int) -> int:
    """Give the level at which a failed message comes back when nobody chose one."""
    return 3 + reconsume_times
