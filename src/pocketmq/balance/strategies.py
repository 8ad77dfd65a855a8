"""All strategies by name, for options and the command line: Java's, and STICKY."""

from pocketmq.balance.allocation import (
    JAVA_STRATEGY_NAMES,
    Strategy,
    StrategySettings,
    java_strategy_by_name,
)
from pocketmq.balance.sticky import Sticky
from pocketmq.errors import AllocationInputInvalid

STICKY = "STICKY"
STRATEGY_NAMES = (*JAVA_STRATEGY_NAMES, STICKY)

_NO_SETTINGS = StrategySettings()


def strategy_by_name(name: str, settings: StrategySettings = _NO_SETTINGS) -> Strategy:
    """Return STICKY, or the Java strategy with this name; case does not matter.

    `MACHINE_ROOM_NEARBY` alone stands for `MACHINE_ROOM_NEARBY-AVG`. Raises `StrategyUnknown`,
    and `AllocationInputInvalid` for MACHINE_ROOM without rooms, a negative number of nodes or
    STICKY as the strategy of foreign members.
    """
    wanted = name.upper()
    if wanted != STICKY:
        return java_strategy_by_name(name, settings, known=STRATEGY_NAMES)
    if settings.mixed.upper() == STICKY:
        raise AllocationInputInvalid(
            "`mixed` must be one of Java's strategies, because it is what foreign members use; "
            "STICKY is not"
        )
    return Sticky(java_strategy_by_name(settings.mixed, settings))
