"""Every request a broker answers, and the function that does.

Handlers of features take a request, and its header if they want it decoded: the row of the request
in the catalogue has the type. Hot paths, sends and pulls, decode it themselves.
"""

import inspect
from typing import cast

from pocketmq.broker import settings
from pocketmq.broker.access import requests as access
from pocketmq.broker.balancing import requests as balancing
from pocketmq.broker.delay import delays
from pocketmq.broker.groups import requests as groups
from pocketmq.broker.members import client_calls
from pocketmq.broker.members import requests as members
from pocketmq.broker.offsets import moving, progress
from pocketmq.broker.offsets import requests as offsets
from pocketmq.broker.pop import entry as pop
from pocketmq.broker.pulling import queries
from pocketmq.broker.pulling import requests as pulling
from pocketmq.broker.retry import requests as retry
from pocketmq.broker.sending import reply_requests
from pocketmq.broker.sending import requests as sending
from pocketmq.broker.serving import unserved
from pocketmq.broker.state import Answer, AnyHandler, BrokerState, Handler, HeaderHandler
from pocketmq.broker.static_topics import requests as static_topics
from pocketmq.broker.statistics import requests as statistics
from pocketmq.broker.timers import requests as timers
from pocketmq.broker.topics import requests as topics
from pocketmq.broker.transactions import requests as transactions
from pocketmq.broker.upkeep import cleaning
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.catalogue import REQUESTS

FEATURES = (
    sending, reply_requests, retry, delays, timers, transactions,
    pulling, queries, pop, offsets, progress, moving,
    members, client_calls, balancing,
    topics, groups, settings, statistics, cleaning,
    static_topics, access, unserved,
)  # fmt: skip


def with_header(code: int, handler: AnyHandler) -> Handler:
    """Return a handler that reads the header its row names; as it is, if it takes none.

    Raises `TypeError` if the handler expects another type than its row declares.
    """
    kind = inspect.get_annotations(handler).get("header")
    if kind is None:
        return cast("Handler", handler)
    declared = REQUESTS[code].header
    if kind is not declared:
        raise TypeError(f"{handler!r} expects header {kind}, but its row declares {declared}")
    call = cast("HeaderHandler", handler)

    def handle(state: BrokerState, connection: Connection, request: Command) -> Answer:
        return call(state, connection, request, request.header(kind))

    return handle


HANDLERS: dict[int, Handler] = {
    int(code): with_header(code, handler)
    for feature in FEATURES
    for code, handler in feature.HANDLERS.items()
}
