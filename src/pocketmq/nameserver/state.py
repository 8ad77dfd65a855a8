"""Everything a name server's handlers work on, and what every handler looks like."""

import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from pocketmq.errors import ResponseCode
from pocketmq.model import TopicRoute
from pocketmq.nameserver.config import NameServerConfig
from pocketmq.nameserver.key_values import ORDER_NAMESPACE, KeyValues
from pocketmq.nameserver.registrations import NotifyMinBrokerId
from pocketmq.nameserver.route_answers import RouteBodies
from pocketmq.nameserver.route_registry import RouteRegistry
from pocketmq.net.limited_logs import RefusalLog
from pocketmq.protocol import Command

if TYPE_CHECKING:
    from pocketmq.nameserver.access_control import NameServerGate  # few name servers have one


SaveProperties = Callable[[dict[str, str]], None]
SUCCESS = int(ResponseCode.SUCCESS)


class NameServerState:
    """One name server's memory. Belongs to its event loop's thread."""

    def __init__(
        self,
        config: NameServerConfig,
        clock: Callable[[], float],
        key_values: KeyValues | None = None,
        save_properties: SaveProperties | None = None,
    ) -> None:
        self.config = config
        self.clock = clock  # seconds, monotonic
        self.started = clock()
        self.table = RouteRegistry()
        self.key_values = key_values or KeyValues()
        self.route_bodies = RouteBodies()
        self.place: dict[str, str] = {}  # where it listens and saves, shown beside the settings
        self.save_properties = save_properties
        self.gate: NameServerGate | None = None  # None: there is no access control
        self.asked_by_super = False  # whether a super user signed the present request
        self.refusals = RefusalLog(logging.getLogger("pocketmq.nameserver"))
        self.notifications: list[NotifyMinBrokerId] = []  # to be sent after the present batch
        self._bodies: dict[str, tuple[int, bytes]] = {}

    def route(self, topic: str) -> TopicRoute | None:
        """Return a topic's route as it is."""
        return self.table.routes.get(topic)

    def order_of(self, topic: str) -> str | None:
        """Return a topic's order configuration, if routes carry it."""
        if not self.config.order_message_enable:
            return None
        return self.key_values.get(ORDER_NAMESPACE, topic)

    def notify(self, notification: NotifyMinBrokerId | None) -> None:
        """Queue a notification of brokers, if there is one and the settings want it."""
        if notification is not None and self.config.notify_min_broker_id_changed:
            self.notifications.append(notification)

    def body(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return a body that depends on the table alone, from a cache until the table changes."""
        version = self.table.routes.version
        kept = self._bodies.get(name)
        if kept is None or kept[0] != version:
            kept = self._bodies[name] = (version, make())
        return kept[1]


Handler = Callable[[NameServerState, Hashable, Command], Command]
"""Takes the state, the connection a request came on, and the request."""
