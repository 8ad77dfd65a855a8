"""The name server: brokers register with it, clients ask it for routes.

Its tables are `RouteRegistry`, which is pure; `NameServer` puts it on the network.
"""

from pocketmq.nameserver.config import NameServerConfig
from pocketmq.nameserver.server import NameServer

__all__ = ["NameServer", "NameServerConfig"]
