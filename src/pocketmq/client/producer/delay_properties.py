"""How a send asks for a delay: the properties that Java sets. Sans-IO."""

from collections.abc import Mapping

from pocketmq.client.checks import is_number
from pocketmq.errors import InvalidInput
from pocketmq.model import property_names

_NOTHING: Mapping[str, str] = {}
_LATEST = 253_402_300_800.0  # the year 10000: a larger number is most likely milliseconds


def delay_properties(
    delay: float | None, delay_level: int | None, deliver_at: float | None
) -> Mapping[str, str]:
    """Return the properties that delay a message, as Java sets them.

    `delay` and `deliver_at` need a 5.x broker. Raises `InvalidInput` for more than one of the
    three, and for invalid values.
    """
    if delay is None and delay_level is None and deliver_at is None:
        return _NOTHING
    if (delay is not None) + (delay_level is not None) + (deliver_at is not None) > 1:
        raise InvalidInput("give one of delay, delay_level and deliver_at, not several")
    if delay_level is not None:
        if type(delay_level) is not int or not 0 <= delay_level < 2**31:
            raise InvalidInput(f"a delay level is 0 (none), 1, 2, …, not {delay_level!r}")
        return {property_names.DELAY_LEVEL: str(delay_level)} if delay_level else _NOTHING
    if delay is not None:
        return {property_names.TIMER_DELAY_MS: str(_milliseconds("delay", delay))}
    return {property_names.TIMER_DELIVER_MS: str(_milliseconds("deliver_at", deliver_at or 0.0))}


def _milliseconds(name: str, seconds: float) -> int:
    if not is_number(seconds) or not 0 <= seconds < _LATEST:  # also refuses NaN
        raise InvalidInput(f"{name} is in seconds, not {seconds!r}")
    return round(seconds * 1000)
