"""The asyncio admin, for operators' programs."""

from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from pocketmq.admin.wire import AdminOptions, AdminSettings, AdminWire
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.model.names import TOOLS_GROUP

if TYPE_CHECKING:
    from pocketmq.admin.access import Access, Accounts
    from pocketmq.admin.balance import Balance
    from pocketmq.admin.brokers import Brokers
    from pocketmq.admin.groups import Groups
    from pocketmq.admin.messages import Messages
    from pocketmq.admin.name_servers import NameServers
    from pocketmq.admin.offsets import Offsets
    from pocketmq.admin.overview import Overview
    from pocketmq.admin.static_topics import StaticTopics
    from pocketmq.admin.topics import Topics
    from pocketmq.admin.tracks import Tracks


class Admin:
    """Queries and changes the servers of a cluster, PocketMQ's or Apache's, all at once.

        async with Admin("127.0.0.1:9876") as admin:
            status = await admin.topics.status("orders")
            progress = await admin.groups.progress("billing")

    Servers that did not answer are in `missing` of the result; their figures never count as 0.
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
        self._wire = AdminWire(client, own)

    async def start(self) -> Self:
        """Connect to a name server. Raises `NameServersUnreachable`; then nothing stays open."""
        await self._wire.open()
        return self

    async def close(self) -> None:
        """Close the connections. Idempotent."""
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
        """Return the time in milliseconds, by the admin's clock."""
        return self._wire.now_ms()

    # Each part is imported when it is first used, since a command needs one or two of them.

    @cached_property
    def brokers(self) -> "Brokers":
        """Brokers: addresses, status, settings."""
        from pocketmq.admin.brokers import Brokers

        return Brokers(self._wire)

    @cached_property
    def name_servers(self) -> "NameServers":
        """Name servers: settings, values, write permissions."""
        from pocketmq.admin.name_servers import NameServers

        return NameServers(self._wire)

    @cached_property
    def topics(self) -> "Topics":
        """Topics: routes, settings, offsets of queues."""
        from pocketmq.admin.topics import Topics

        return Topics(self._wire, self.brokers, self.name_servers)

    @cached_property
    def static_topics(self) -> "StaticTopics":
        """Static topics: logical queues, created and moved between brokers."""
        from pocketmq.admin.static_topics import StaticTopics

        return StaticTopics(self._wire, self.brokers)

    @cached_property
    def groups(self) -> "Groups":
        """Groups: settings, members, progress."""
        from pocketmq.admin.groups import Groups

        return Groups(self._wire, self.brokers, self.topics)

    @cached_property
    def offsets(self) -> "Offsets":
        """Offsets: bounds of queues, resets of groups."""
        from pocketmq.admin.offsets import Offsets

        return Offsets(self._wire, self.topics, self.groups)

    @cached_property
    def messages(self) -> "Messages":
        """Messages: queries, traces, resends."""
        from pocketmq.admin.messages import Messages
        from pocketmq.admin.reading import QueueReader

        reading = QueueReader(self._wire, self.offsets)
        return Messages(self._wire, self.brokers, self.topics, reading)

    @cached_property
    def tracks(self) -> "Tracks":
        """Which groups have consumed a message."""
        from pocketmq.admin.tracks import Tracks

        return Tracks(self._wire, self.topics, self.groups)

    @cached_property
    def access(self) -> "Access":
        """Users and rules."""
        from pocketmq.admin.access import Access

        return Access(self._wire, self.brokers)

    @cached_property
    def accounts(self) -> "Accounts":
        """Accounts of 4.x brokers."""
        from pocketmq.admin.access import Accounts

        return Accounts(self._wire, self.brokers)

    @cached_property
    def overview(self) -> "Overview":
        """Summaries of many topics and groups."""
        from pocketmq.admin.overview import Overview

        return Overview(self._wire, self.brokers, self.topics, self.groups)

    @cached_property
    def balance(self) -> "Balance":
        """The assignment of groups, and why it is so."""
        from pocketmq.admin.balance import Balance

        return Balance(self._wire, self.topics, self.groups)
