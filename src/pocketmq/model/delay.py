"""How long a message is delayed: delay levels, and a group's retry policy.

Delay levels are RocketMQ's classic way to delay a message, and its default retry back-off.
"""

from enum import Enum

from pocketmq.errors import InvalidInput
from pocketmq.model.value import WireValue

DELAY_LEVELS: tuple[float, ...] = (
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
"""Seconds of level 1, 2, … 18, as brokers have them unless configured otherwise."""
MOST_LEVELS = 128
"""Each level has a queue of its own."""
LONGEST_DELAY = 36_500 * 86_400
"""The longest delay in seconds: a time that far ahead still fits every field of a time."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_DIGITS = 10


def parse_delay_levels(text: str) -> tuple[float, ...]:
    """Read a broker's `messageDelayLevel`, such as `1s 5s 10m 2h`; units are s, m, h and d.

    Raises `InvalidInput` for anything else, for no level at all, and for too many.
    """
    parts = text.split()
    if not 0 < len(parts) <= MOST_LEVELS:
        raise InvalidInput(
            f"messageDelayLevel has {len(parts)} levels; 1 to {MOST_LEVELS} are allowed"
        )
    return tuple([_seconds(part) for part in parts])


def _seconds(part: str) -> float:
    number, unit = part[:-1], _UNITS.get(part[-1])
    if unit is None or not (number.isascii() and number.isdecimal()):
        raise InvalidInput(
            f"messageDelayLevel: {part[:40]!r} is not a delay; "
            "write a number and s, m, h or d, as in 10s"
        )
    if len(number) > _MOST_DIGITS or int(number) * unit > LONGEST_DELAY:
        raise InvalidInput(f"messageDelayLevel: {part[:40]!r} exceeds the limit of 36500d")
    return float(int(number) * unit)


def retry_level(reconsume_times: int) -> int:
    """Return the default level of a failed message's redelivery."""
    return 3 + reconsume_times


class RetryPolicyKind(Enum):
    """How the pauses between retries grow (5.x)."""

    EXPONENTIAL = "EXPONENTIAL"
    CUSTOMIZED = "CUSTOMIZED"


class ExponentialRetry(WireValue, frozen=True, kw_only=True):
    """Pauses in milliseconds that grow by a factor up to a limit."""

    initial: int = 5000
    max: int = 7_200_000
    multiplier: int = 2


class CustomizedRetry(WireValue, frozen=True, kw_only=True):
    """Pauses in milliseconds, one by one."""

    next: tuple[int, ...] = (
        1000, 5000, 10_000, 30_000, 60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000,
        480_000, 540_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000,
    )  # fmt: skip


class RetryPolicy(WireValue, frozen=True, kw_only=True):
    """A group's choice of pauses between retries (5.x)."""

    type: RetryPolicyKind = RetryPolicyKind.CUSTOMIZED
    exponential_retry_policy: ExponentialRetry | None = None
    customized_retry_policy: CustomizedRetry | None = None
