"""The blocking admin: `pocketmq.aio.Admin` for ordinary threads.

Each part has the methods of its asyncio twin, one line each: `blocking` wraps them, with their
types and docstrings. They are listed, not generated at run time, so that type checkers and editors
see them; a test compares the two lists.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from pocketmq.admin.access import Access as AsyncAccess
from pocketmq.admin.access import Accounts as AsyncAccounts
from pocketmq.admin.admin import Admin as AsyncAdmin
from pocketmq.admin.balance import Balance as AsyncBalance
from pocketmq.admin.brokers import Brokers as AsyncBrokers
from pocketmq.admin.groups import Groups as AsyncGroups
from pocketmq.admin.messages import Messages as AsyncMessages
from pocketmq.admin.name_servers import NameServers as AsyncNameServers
from pocketmq.admin.offsets import Offsets as AsyncOffsets
from pocketmq.admin.overview import Overview as AsyncOverview
from pocketmq.admin.static_topics import StaticTopics as AsyncStaticTopics
from pocketmq.admin.topics import Topics as AsyncTopics
from pocketmq.admin.tracks import Tracks as AsyncTracks
from pocketmq.admin.wire import AdminOptions, AdminSettings
from pocketmq.blocking.facade import Facade
from pocketmq.client.options import ClientOptions

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class BlockingPart(Generic[A]):
    """A part of an asyncio admin, and the function that runs its coroutines."""

    def __init__(self, part: A, run: Run) -> None:
        self._part = part
        self._run = run


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingPart[A], P], T]:
    """Return a method that waits for the result of a coroutine method."""

    @wraps(method)
    def call(part: BlockingPart[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = part._run(method(part._part, *args, **kwargs))  # noqa: SLF001 - its own part
        return result

    return call


class BlockingBrokers(BlockingPart[AsyncBrokers]):
    """Brokers: see `pocketmq.admin.brokers`."""

    all = blocking(AsyncBrokers.all)
    masters = blocking(AsyncBrokers.masters)
    targets = blocking(AsyncBrokers.targets)
    status = blocking(AsyncBrokers.status)
    status_at = blocking(AsyncBrokers.status_at)
    config = blocking(AsyncBrokers.config)
    change_config = blocking(AsyncBrokers.change_config)
    counter = blocking(AsyncBrokers.counter)
    consume_stats = blocking(AsyncBrokers.consume_stats)
    producers = blocking(AsyncBrokers.producers)
    clean_queues = blocking(AsyncBrokers.clean_queues)
    clean_topics = blocking(AsyncBrokers.clean_topics)
    delete_expired_log = blocking(AsyncBrokers.delete_expired_log)


class BlockingNameServers(BlockingPart[AsyncNameServers]):
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
        """The addresses that the admin was given."""
        return self._part.addresses


class BlockingStaticTopics(BlockingPart[AsyncStaticTopics]):
    """Static topics: see `pocketmq.admin.static_topics`."""

    configs = blocking(AsyncStaticTopics.configs)
    create = blocking(AsyncStaticTopics.create)
    move = blocking(AsyncStaticTopics.move)
    apply = blocking(AsyncStaticTopics.apply)


class BlockingTopics(BlockingPart[AsyncTopics]):
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


class BlockingGroups(BlockingPart[AsyncGroups]):
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


class BlockingOffsets(BlockingPart[AsyncOffsets]):
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


class BlockingMessages(BlockingPart[AsyncMessages]):
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


class BlockingTracks(BlockingPart[AsyncTracks]):
    """Which groups have consumed a message: see `pocketmq.admin.tracks`."""

    of = blocking(AsyncTracks.of)


class BlockingAccess(BlockingPart[AsyncAccess]):
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


class BlockingAccounts(BlockingPart[AsyncAccounts]):
    """Accounts of 4.x brokers: see `pocketmq.admin.access`."""

    put = blocking(AsyncAccounts.put)
    delete = blocking(AsyncAccounts.delete)
    trust = blocking(AsyncAccounts.trust)
    versions = blocking(AsyncAccounts.versions)


class BlockingOverview(BlockingPart[AsyncOverview]):
    """Summaries of a cluster: see `pocketmq.admin.overview`."""

    groups = blocking(AsyncOverview.groups)
    traffic = blocking(AsyncOverview.traffic)


class BlockingBalance(BlockingPart[AsyncBalance]):
    """How groups share queues: see `pocketmq.admin.balance`."""

    facts = blocking(AsyncBalance.facts)
    explain = blocking(AsyncBalance.explain)
    what_if = blocking(AsyncBalance.what_if)
    situation = blocking(AsyncBalance.situation)
    rebalance = blocking(AsyncBalance.rebalance)


class Admin(Facade[AsyncAdmin]):
    """Queries and changes a cluster, PocketMQ's or Apache's; all servers are asked at once.

        with Admin("127.0.0.1:9876") as admin:
            status = admin.topics.status("orders")
            progress = admin.groups.progress("billing")

    Servers that did not answer are listed in `missing` of the result; they never count as 0.
    Threads may share it. The methods are those of `pocketmq.aio.Admin`; see there.
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
        self.brokers = BlockingBrokers(admin.brokers, self._call)
        self.name_servers = BlockingNameServers(admin.name_servers, self._call)
        self.topics = BlockingTopics(admin.topics, self._call)
        self.static_topics = BlockingStaticTopics(admin.static_topics, self._call)
        self.groups = BlockingGroups(admin.groups, self._call)
        self.offsets = BlockingOffsets(admin.offsets, self._call)
        self.messages = BlockingMessages(admin.messages, self._call)
        self.tracks = BlockingTracks(admin.tracks, self._call)
        self.access = BlockingAccess(admin.access, self._call)
        self.accounts = BlockingAccounts(admin.accounts, self._call)
        self.overview = BlockingOverview(admin.overview, self._call)
        self.balance = BlockingBalance(admin.balance, self._call)

    @property
    def options(self) -> AdminOptions:
        """The admin client's options."""
        return self._client.options

    def __repr__(self) -> str:
        return f"<Admin of {self._client.client_options.name_servers or 'NAMESRV_ADDR'}>"
