"""The admin as operators' programs use it, on asyncio."""

from types import TracebackType
from typing import Self, Unpack

from pocketmq.admin.access import Access
from pocketmq.admin.balance import Balance
from pocketmq.admin.brokers import Brokers
from pocketmq.admin.groups import Groups
from pocketmq.admin.messages import Messages
from pocketmq.admin.name_servers import NameServers
from pocketmq.admin.offsets import Offsets
from pocketmq.admin.options import AdminOptions, AdminSettings
from pocketmq.admin.overview import Overview
from pocketmq.admin.reading import Reading
from pocketmq.admin.topics import Topics
from pocketmq.admin.tracks import Tracks
from pocketmq.admin.wire import Wire
from pocketmq.client.options import ClientOptions
from pocketmq.client.settings import sort_settings
from pocketmq.model.names import TOOLS_GROUP


class Admin:
    """Asks and tells the servers of a cluster, PocketMQ's or Apache's, all of them at once.

        async with Admin("127.0.0.1:9876") as admin:
            status = await admin.topics.status("orders")
            progress = await admin.groups.progress("billing")

    What a server did not tell is named in `missing` of the result; it is never counted as 0.
    Every call ends by its deadline. Belongs to one event loop; tasks may share it.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        options: ClientOptions | None = None,
        **settings: Unpack[AdminSettings],
    ) -> None:
        client, own = sort_settings(AdminOptions, TOOLS_GROUP, name_servers, options, settings)
        self.options = own
        self.client_options = client
        self._wire = wire = Wire(client, own)
        self.brokers = Brokers(wire)
        self.name_servers = NameServers(wire)
        self.topics = Topics(wire, self.brokers, self.name_servers)
        self.groups = Groups(wire, self.brokers, self.topics)
        self.offsets = Offsets(wire, self.topics, self.groups)
        reading = Reading(wire, self.offsets)
        self.messages = Messages(wire, self.brokers, self.topics, self.offsets, reading)
        self.tracks = Tracks(wire, self.topics, self.groups)
        self.access = Access(wire, self.brokers)
        self.overview = Overview(wire, self.brokers, self.topics, self.groups)
        self.balance = Balance(wire, self.topics, self.groups)

    async def start(self) -> Self:
        """Reach a name server. Raises `NameServersUnreachable`; then nothing is open."""
        await self._wire.open()
        return self

    async def close(self) -> None:
        """Close the connections. Harmless twice."""
        await self._wire.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def now_ms(self) -> int:
        """Give the time in milliseconds, by the admin's clock."""
        return self._wire.now_ms()
