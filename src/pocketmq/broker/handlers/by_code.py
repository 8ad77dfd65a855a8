"""Every request a broker answers, and the function that does."""

from pocketmq.broker import settings
from pocketmq.broker.access import account_requests, user_requests
from pocketmq.broker.balancing import requests
from pocketmq.broker.delay import delays
from pocketmq.broker.groups import requests
from pocketmq.broker.members import client_calls, connections, requests
from pocketmq.broker.offsets import moving, progress, requests
from pocketmq.broker.pop import entry
from pocketmq.broker.pulling import queries, requests
from pocketmq.broker.retry import requests
from pocketmq.broker.sending import reply_requests, requests
from pocketmq.broker.serving import unserved
from pocketmq.broker.state import Handler
from pocketmq.broker.statistics import requests
from pocketmq.broker.timers import requests
from pocketmq.broker.topics import requests
from pocketmq.broker.transactions import requests
from pocketmq.broker.upkeep import cleaning

HANDLERS: dict[int, Handler] = {
    int(code): handler
    for feature in (
        requests,
        requests,
        delays,
        requests,
        requests,
        reply_requests,
        requests,
        entry,
        requests,
        requests,
        connections,
        requests,
        queries,
        requests,
        requests,
        requests,
        settings,
        requests,
        requests,
        progress,
        moving,
        client_calls,
        requests,
        cleaning,
        unserved,
        user_requests,
        account_requests,
    )
    for code, handler in feature.HANDLERS.items()
}
