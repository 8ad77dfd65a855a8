"""The blocking admin: `pocketmq.aio.Admin` for ordinary threads.

Each room has the methods of its asyncio twin, taken from it with their types: no second logic.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from pocketmq.admin.access import Access as AsyncAccess
from pocketmq.admin.accounts import Accounts as AsyncAccounts
from pocketmq.admin.admin import Admin as AsyncAdmin
from pocketmq.admin.balance import Balance as AsyncBalance
from pocketmq.admin.brokers import Brokers as AsyncBrokers
from pocketmq.admin.groups import Groups as AsyncGroups
from pocketmq.admin.messages import Messages as AsyncMessages
from pocketmq.admin.name_servers import NameServers as AsyncNameServers
from pocketmq.admin.offsets import Offsets as AsyncOffsets
from pocketmq.admin.overview import Overview as AsyncOverview
from pocketmq.admin.topics import Topics as AsyncTopics
from pocketmq.admin.tracks import Tracks as AsyncTracks
from pocketmq.admin.wire import AdminOptions, AdminSettings
from pocketmq.blocking.facade import Facade
from pocketmq.client.options import ClientOptions

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Room(Generic[A]):
    """A part of an asyncio admin, and what runs its coroutines."""

    def __init__(self, room: A, run: Run) -> None:
        self._room = room
        self._run = run


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Room[A], P], T]:
    """Make a method that waits out of one that is awaited."""

    @wraps(method)
    def call(room: Room[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = room._run(method(room._room, *args, **kwargs))  # noqa: SLF001 - its own part
        return result

    return call


class Brokers(Room[AsyncBrokers]):
    """Brokers: see `pocketmq.admin.brokers`."""

    all = blocking(AsyncBrokers.all)
    masters = blocking(AsyncBrokers.masters)
    targets = blocking(AsyncBrokers.targets)
    status = blocking(AsyncBrokers.status)
    config = blocking(AsyncBrokers.config)
    change_config = blocking(AsyncBrokers.change_config)
    counter = blocking(AsyncBrokers.counter)
    consume_stats = blocking(AsyncBrokers.consume_stats)
    producers = blocking(AsyncBrokers.producers)
    clean_queues = blocking(AsyncBrokers.clean_queues)
    clean_topics = blocking(AsyncBrokers.clean_topics)
    delete_expired_log = blocking(AsyncBrokers.delete_expired_log)


class NameServers(Room[AsyncNameServers]):
    """Name servers: see `pocketmq.admin.name_servers`."""

    config = blocking(AsyncNameServers.config)
    change_config = blocking(AsyncNameServers.change_config)
    put = blocking(AsyncNameServers.put)
    delete = blocking(AsyncNameServers.delete)
    get = blocking(AsyncNameServers.get)
    values = blocking(AsyncNameServers.values)
    wipe_write_permission = blocking(AsyncNameServers.wipe_write_permission)
    add_write_permission = blocking(AsyncNameServers.add_write_permission)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those the admin was given."""
        return self._room.addresses


class Topics(Room[AsyncTopics]):
    """Topics: see `pocketmq.admin.topics`."""

    names = blocking(AsyncTopics.names)
    route = blocking(AsyncTopics.route)
    places = blocking(AsyncTopics.places)
    clusters = blocking(AsyncTopics.clusters)
    create = blocking(AsyncTopics.create)
    create_many = blocking(AsyncTopics.create_many)
    index = blocking(AsyncTopics.index)
    delete = blocking(AsyncTopics.delete)
    set_permission = blocking(AsyncTopics.set_permission)
    status = blocking(AsyncTopics.status)
    configs = blocking(AsyncTopics.configs)
    system_names = blocking(AsyncTopics.system_names)
    consumers = blocking(AsyncTopics.consumers)
    consumers_at = blocking(AsyncTopics.consumers_at)
    with_consumers = blocking(AsyncTopics.with_consumers)


class Groups(Room[AsyncGroups]):
    """Groups: see `pocketmq.admin.groups`."""

    configs = blocking(AsyncGroups.configs)
    config = blocking(AsyncGroups.config)
    create = blocking(AsyncGroups.create)
    create_many = blocking(AsyncGroups.create_many)
    delete = blocking(AsyncGroups.delete)
    set_mode = blocking(AsyncGroups.set_mode)
    places = blocking(AsyncGroups.places)
    connections = blocking(AsyncGroups.connections)
    connections_at = blocking(AsyncGroups.connections_at)
    producers = blocking(AsyncGroups.producers)
    running_info = blocking(AsyncGroups.running_info)
    running = blocking(AsyncGroups.running)
    progress = blocking(AsyncGroups.progress)
    stats_at = blocking(AsyncGroups.stats_at)
    topics = blocking(AsyncGroups.topics)


class Offsets(Room[AsyncOffsets]):
    """Offsets: see `pocketmq.admin.offsets`."""

    bounds = blocking(AsyncOffsets.bounds)
    at_time = blocking(AsyncOffsets.at_time)
    commit = blocking(AsyncOffsets.commit)
    reset = blocking(AsyncOffsets.reset)
    reset_queue = blocking(AsyncOffsets.reset_queue)
    reset_stored = blocking(AsyncOffsets.reset_stored)
    clone = blocking(AsyncOffsets.clone)
    in_memory = blocking(AsyncOffsets.in_memory)
    address_of = blocking(AsyncOffsets.address_of)


class Messages(Room[AsyncMessages]):
    """Messages: see `pocketmq.admin.messages`."""

    by_id = blocking(AsyncMessages.by_id)
    by_key = blocking(AsyncMessages.by_key)
    by_unique_key = blocking(AsyncMessages.by_unique_key)
    by_offset = blocking(AsyncMessages.by_offset)
    page = blocking(AsyncMessages.page)
    between = blocking(AsyncMessages.between)
    dead_letters = blocking(AsyncMessages.dead_letters)
    trace = blocking(AsyncMessages.trace)
    consume_directly = blocking(AsyncMessages.consume_directly)
    resend = blocking(AsyncMessages.resend)


class Tracks(Room[AsyncTracks]):
    """Who has consumed a message: see `pocketmq.admin.tracks`."""

    of = blocking(AsyncTracks.of)


class Access(Room[AsyncAccess]):
    """Users and rules: see `pocketmq.admin.access`."""

    create_user = blocking(AsyncAccess.create_user)
    update_user = blocking(AsyncAccess.update_user)
    delete_user = blocking(AsyncAccess.delete_user)
    user = blocking(AsyncAccess.user)
    users = blocking(AsyncAccess.users)
    create_rules = blocking(AsyncAccess.create_rules)
    update_rules = blocking(AsyncAccess.update_rules)
    delete_rules = blocking(AsyncAccess.delete_rules)
    rules = blocking(AsyncAccess.rules)
    all_rules = blocking(AsyncAccess.all_rules)
    copy_users = blocking(AsyncAccess.copy_users)
    copy_rules = blocking(AsyncAccess.copy_rules)


class Accounts(Room[AsyncAccounts]):
    """Accounts of 4.x brokers: see `pocketmq.admin.accounts`."""

    put = blocking(AsyncAccounts.put)
    delete = blocking(AsyncAccounts.delete)
    trust = blocking(AsyncAccounts.trust)
    versions = blocking(AsyncAccounts.versions)


class Overview(Room[AsyncOverview]):
    """Many things at a glance: see `pocketmq.admin.overview`."""

    groups = blocking(AsyncOverview.groups)
    traffic = blocking(AsyncOverview.traffic)


class Balance(Room[AsyncBalance]):
    """How groups share queues: see `pocketmq.admin.balance`."""

    facts = blocking(AsyncBalance.facts)
    explain = blocking(AsyncBalance.explain)
    what_if = blocking(AsyncBalance.what_if)
    situation = blocking(AsyncBalance.situation)
    rebalance = blocking(AsyncBalance.rebalance)


class Admin(Facade[AsyncAdmin]):
    """Asks and tells the servers of a cluster, PocketMQ's or Apache's, all of them at once.

        with Admin("127.0.0.1:9876") as admin:
            status = admin.topics.status("orders")
            progress = admin.groups.progress("billing")

    What a server did not tell is named in `missing` of the result; it is never counted as 0.
    Threads may share it. What the methods do and raise is told at those of `pocketmq.aio.Admin`.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        options: ClientOptions | None = None,
        **settings: Unpack[AdminSettings],
    ) -> None:
        admin = AsyncAdmin(name_servers, options=options, **settings)
        super().__init__(admin)
        self.brokers = Brokers(admin.brokers, self._call)
        self.name_servers = NameServers(admin.name_servers, self._call)
        self.topics = Topics(admin.topics, self._call)
        self.groups = Groups(admin.groups, self._call)
        self.offsets = Offsets(admin.offsets, self._call)
        self.messages = Messages(admin.messages, self._call)
        self.tracks = Tracks(admin.tracks, self._call)
        self.access = Access(admin.access, self._call)
        self.accounts = Accounts(admin.accounts, self._call)
        self.overview = Overview(admin.overview, self._call)
        self.balance = Balance(admin.balance, self._call)

    @property
    def options(self) -> AdminOptions:
        """How it works."""
        return self._client.options

    def __repr__(self) -> str:
        return f"<Admin of {self._client.client_options.name_servers or 'NAMESRV_ADDR'}>"
