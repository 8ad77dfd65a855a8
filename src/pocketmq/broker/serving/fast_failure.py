"""How long a request may wait for its turn, and what it is told that waited longer. Pure.

Java's rule (BrokerFastFailure): an answer that says "busy" at once is worth more than one that
comes when nobody waits any more, and a send that is carried out after its sender has given up
would be stored twice. Here a request waits only in what was read from its own connection and is
handed over in turns with the others'; beyond that the socket holds its sender back.
"""

from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import ResponseCode
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.command import Command
from pocketmq.protocol.request import RequestQueue

SHORT = 0.01
"""Seconds nobody needs to look at."""


def _setting(queue: RequestQueue) -> str | None:
    """Return the setting that limits the wait in a queue; None for a queue without a limit."""
    return None if queue is RequestQueue.UNLIMITED else f"wait_time_mills_in_{queue.value}_queue"


_SETTINGS = {code: _setting(row.queue) for code, row in REQUESTS.items()}
_OF_TOOLS = _setting(RequestQueue.ADMIN)


def longest_wait(config: BrokerConfig, code: int) -> float | None:
    """Give the seconds a request of this code may wait; None for one that may for ever."""
    setting = _SETTINGS.get(code, _OF_TOOLS)
    if setting is None or not config.broker_fast_failure_enable:
        return None
    return float(getattr(config, setting)) / 1000


def busy_answer(
    config: BrokerConfig, request: Command, waited: float, queued: int
) -> Command | None:
    """Give the answer to a request that waited too long, in Java's words, else None."""
    longest = longest_wait(config, request.code)
    if longest is None or waited < longest:
        return None
    return request.reply(
        ResponseCode.SYSTEM_BUSY,
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {waited * 1000:.0f}ms, size of queue: {queued}",
    )
