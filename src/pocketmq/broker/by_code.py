"""Every request a broker answers, and the function that does."""

from pocketmq.broker import settings
from pocketmq.broker.access import account_requests, user_requests
from pocketmq.broker.balancing import requests as balancing
from pocketmq.broker.delay import delays
from pocketmq.broker.groups import requests as groups
from pocketmq.broker.members import client_calls, connections
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
from pocketmq.broker.state import Handler
from pocketmq.broker.statistics import requests as statistics
from pocketmq.broker.timers import requests as timers
from pocketmq.broker.topics import requests as topics
from pocketmq.broker.transactions import requests as transactions
from pocketmq.broker.upkeep import cleaning

_FEATURES = (
    sending, reply_requests, retry, delays, timers, transactions,
    pulling, queries, pop, offsets, progress, moving,
    members, connections, client_calls, balancing,
    topics, groups, settings, statistics, cleaning,
    user_requests, account_requests, unserved,
)  # fmt: skip

HANDLERS: dict[int, Handler] = {
    int(code): handler for feature in _FEATURES for code, handler in feature.HANDLERS.items()
}
