"""What all calls of a proxy share."""

import msgspec

from pocketmq.client.clock import Clock
from pocketmq.client.tasks import Tasks
from pocketmq.proxy.cached_cluster import CachedCluster
from pocketmq.proxy.clients import Clients
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.target_queues import TargetQueues
from pocketmq.proxy.translation.limits import ProxyLimits


class ProxyState(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a running proxy. Belongs to one event loop."""

    cluster: CachedCluster
    clients: Clients
    renewals: Renewals
    choice: TargetQueues
    tasks: Tasks
    limits: ProxyLimits
    clock: Clock
