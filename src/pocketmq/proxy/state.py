"""What all calls of a proxy share."""

import msgspec

from pocketmq.client.clock import Clock
from pocketmq.client.tasks import Tasks
from pocketmq.proxy.clients import Clients
from pocketmq.proxy.cluster_view import ClusterView
from pocketmq.proxy.queue_choice import QueueChoice
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.translation.limits import ProxyLimits


class ProxyState(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a running proxy. Belongs to one event loop."""

    cluster: ClusterView
    clients: Clients
    renewals: Renewals
    choice: QueueChoice
    tasks: Tasks
    limits: ProxyLimits
    clock: Clock
