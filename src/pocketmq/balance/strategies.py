"""All strategies by name, for options and the command line: Java's, and STICKY."""

from pocketmq.balance import allocation
from pocketmq.balance.sticky import Sticky
from pocketmq.errors import AllocationInputInvalid

STICKY = "STICKY"
STRATEGY_NAMES = (*allocation.JAVA_STRATEGY_NAMES, STICKY)

_NO_SETTINGS = allocation.StrategySettings()


def strategy_by_name(
    name: str, settings: allocation.StrategySettings = _NO_SETTINGS
) -> allocation.Strategy:
    """Return STICKY, or the Java strategy with this name; case does not matter.

    `MACHINE_ROOM_NEARBY` alone stands for `MACHINE_ROOM_NEARBY-AVG`. Raises `StrategyUnknown`,
    and `AllocationInputInvalid` for MACHINE_ROOM without rooms, a negative number of nodes or
    STICKY as the strategy of foreign members.
    """
    wanted = name.upper()
    if wanted != STICKY:
        return allocation.java_strategy_by_name(name, settings, known=STRATEGY_NAMES)
    if settings.mixed.upper() == STICKY:
        raise AllocationInputInvalid(
            "`mixed` must be one of Java's strategies, because it is what foreign members use; "
            "STICKY is not"
        )
    return Sticky(allocation.java_strategy_by_name(settings.mixed, settings))
