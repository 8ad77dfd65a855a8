"""Every request a broker answers, and the function that does."""

from pocketmq.broker.access import account_requests as accounts
from pocketmq.broker.access import user_requests as users
from pocketmq.broker.balancing import lock_requests as locks
from pocketmq.broker.balancing import requests as balancing
from pocketmq.broker.delay import requests as delay
from pocketmq.broker.groups import requests as groups
from pocketmq.broker.members import client_calls, connections
from pocketmq.broker.members import requests as members
from pocketmq.broker.offsets import moving, progress
from pocketmq.broker.offsets import requests as offsets
from pocketmq.broker.pop import entry as popping
from pocketmq.broker.pulling import queries
from pocketmq.broker.pulling import requests as pulling
from pocketmq.broker.retry import requests as retry
from pocketmq.broker.sending import reply_requests as replies
from pocketmq.broker.sending import requests as sending
from pocketmq.broker.serving import unserved
from pocketmq.broker.settings import requests as settings
from pocketmq.broker.state import Handler
from pocketmq.broker.statistics import requests as statistics
from pocketmq.broker.statistics import runtime_info
from pocketmq.broker.timers import recall
from pocketmq.broker.timers import requests as timers
from pocketmq.broker.topics import requests as topics
from pocketmq.broker.transactions import requests as transactions
from pocketmq.broker.upkeep import requests as upkeep

HANDLERS: dict[int, Handler] = {
    int(code): handler
    for feature in (
        sending,
        retry,
        delay,
        transactions,
        recall,
        replies,
        pulling,
        popping,
        offsets,
        members,
        connections,
        locks,
        queries,
        topics,
        groups,
        balancing,
        settings,
        runtime_info,
        statistics,
        progress,
        moving,
        client_calls,
        timers,
        upkeep,
        unserved,
        users,
        accounts,
    )
    for code, handler in feature.HANDLERS.items()
}
