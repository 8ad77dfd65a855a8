"""Consumer and producer groups: settings, members, progress."""

from functools import partial
from typing import TypeAlias

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, Missing, ServerPlace
from pocketmq.admin.logical_queues import logical_progress, mapped_configs
from pocketmq.admin.relayed import RelayedCall, RelayedCalls
from pocketmq.admin.topics import Topics, places_of
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import (
    Absent,
    ConsumerOffline,
    MQError,
    NoPermission,
    RequestTimedOut,
    RouteNotFound,
)
from pocketmq.model import GroupConfig, MessageQueue, MessageRequestMode, sort_queues
from pocketmq.model.names import check_group, dead_letter_topic, retry_topic
from pocketmq.protocol.requests import assignment, client_calls
from pocketmq.protocol.requests import groups as rows
from pocketmq.protocol.requests.stats import GET_CONSUME_STATS, ConsumeStatsBody, QueueProgress

_PATIENCE = 15.0
"""Seconds for figures over all queues of a group, and for requests relayed to a client."""


Progress: TypeAlias = dict[MessageQueue, QueueProgress]


class GroupProgress(msgspec.Struct, frozen=True):
    """The progress of a group in each queue; queues of brokers in `missing` are not listed."""

    queues: Progress
    consume_tps: float
    missing: tuple[Missing, ...] = ()

    @property
    def lag(self) -> int:
        """Messages not committed yet, in the listed queues."""
        return sum(each.broker_offset - each.consumer_offset for each in self.queues.values())

    @property
    def in_flight(self) -> int:
        """Messages pulled but not committed yet, in the listed queues."""
        return sum(each.pull_offset - each.consumer_offset for each in self.queues.values())


class Running(msgspec.Struct, frozen=True):
    """What the members of a group report; `silent` ones did not answer."""

    members: dict[str, client_calls.RunningInfo]
    silent: dict[str, MQError]


class Groups:
    """Queries and changes all brokers of a group at once."""

    def __init__(self, wire: AdminWire, brokers: Brokers, topics: Topics) -> None:
        self._wire = wire
        self._brokers = brokers
        self._topics = topics
        self._relayed = RelayedCalls()

    # Settings

    async def configs(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[dict[str, GroupConfig]]:
        """Return the settings of every group, of each master."""
        places = await self._brokers.targets(cluster, address)
        found = await self._wire.read_each(places, rows.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        return found.map(lambda table: table.subscription_group_table)

    async def config(self, group: str) -> Gathered[GroupConfig]:
        """Return a group's settings on each broker that has it."""
        # A request for a single group would make some brokers create it.
        found = await self.configs()
        answers = tuple(each for each in found.answers if group in each.value)
        return Gathered(answers, found.missing).map(lambda table: table[group])

    async def create(
        self, config: GroupConfig, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create a group on brokers, or change it. Raises `NameInvalid`, `Absent`."""
        check_group(config.group_name)
        places = await self._brokers.targets(cluster, address)
        request = rows.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        return await self._wire.tell_each(places, request, None, config)

    async def create_many(
        self, configs: list[GroupConfig], cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create or change many groups with one request to each broker (5.x)."""
        for config in configs:
            check_group(config.group_name)
        body = rows.GroupConfigs(group_config_list=configs)
        places = await self._brokers.targets(cluster, address)
        request = rows.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST
        return await self._wire.tell_each(places, request, None, body)

    async def delete(
        self,
        group: str,
        cluster: str | None = None,
        address: str | None = None,
        *,
        offsets: bool = False,
    ) -> Gathered[None]:
        """Delete a group, and its offsets if wanted.

        On a whole cluster its retry and dead-letter topics are deleted, too. Raises `Absent`.
        """
        header = rows.DELETE_SUBSCRIPTIONGROUP.header(
            group_name=group, clean_offset=offsets, remove_offset=offsets
        )
        places = await self._brokers.targets(cluster, address)
        done = await self._wire.tell_each(places, rows.DELETE_SUBSCRIPTIONGROUP, header)
        if cluster is not None and done.complete:
            await self._topics.delete(retry_topic(group), cluster)
            await self._topics.delete(dead_letter_topic(group), cluster)
        return done

    async def set_mode(
        self,
        topic: str,
        group: str,
        mode: MessageRequestMode,
        cluster: str | None = None,
        address: str | None = None,
        *,
        share: int = 0,
    ) -> Gathered[None]:
        """Make a group pull a topic's messages, or pop them from `share` queues each (5.x)."""
        body = assignment.RequestMode(
            topic=topic, consumer_group=group, mode=mode, pop_share_queue_num=share
        )
        places = await self._brokers.targets(cluster, address)
        return await self._wire.tell_each(places, assignment.SET_MESSAGE_REQUEST_MODE, None, body)

    # Members

    async def places(self, group: str) -> list[ServerPlace]:
        """Return the brokers on which a group has had members, else those that have its settings.

        Raises `Absent` if no broker has the group, and `NoPermission` if it never had a member and
        the user may not list groups.
        """
        try:
            return await self._topics.places(retry_topic(group))  # made for a group's first member
        except RouteNotFound:
            config = (await self.config(group)).some()
        if not config.answers:
            raise Absent("group", group, "no broker has it; it may never have had a member")
        return [each.place for each in config]

    async def connections(
        self, group: str, address: str | None = None
    ) -> Gathered[rows.ConsumerConnections]:
        """Return a group's members as each broker lists them, which may be none.

        Raises `Absent` if no broker has the group; to a user who may not list groups, such a group
        has no members.
        """
        if address is not None:
            return await self.connections_at(group, await self._brokers.targets(address=address))
        try:
            places = await self.places(group)
        except NoPermission:
            places = await self._brokers.masters()
        return await self.connections_at(group, places)

    async def connections_at(
        self, group: str, places: list[ServerPlace]
    ) -> Gathered[rows.ConsumerConnections]:
        """Return a group's members as some brokers list them."""
        header = rows.GET_CONSUMER_CONNECTION_LIST.header(consumer_group=group)

        async def ask(place: ServerPlace) -> rows.ConsumerConnections:
            try:
                return await self._wire.read(
                    place.address, rows.GET_CONSUMER_CONNECTION_LIST, header
                )
            except ConsumerOffline:
                return rows.ConsumerConnections()

        return await self._wire.each(places, ask)

    async def producers(self, group: str, topic: str) -> Gathered[rows.ProducerConnections]:
        """Return the producers of a group as each broker of a topic lists them.

        Brokers without any refuse, and are missing. Raises `RouteNotFound`.
        """
        header = rows.GET_PRODUCER_CONNECTION_LIST.header(producer_group=group)
        places = await self._topics.places(topic)
        return await self._wire.read_each(places, rows.GET_PRODUCER_CONNECTION_LIST, header)

    async def running_info(
        self, group: str, client_id: str, *, stacks: bool = False, patience: float | None = None
    ) -> client_calls.RunningInfo:
        """Return what a member reports, through the first broker that reaches it.

        With `stacks` it includes its thread stacks. A broker is asked for one member at a time;
        `patience` is the time in seconds for each. Raises the last broker's error if none can.
        """
        header = client_calls.GET_CONSUMER_RUNNING_INFO.header(
            consumer_group=group, client_id=client_id, jstack_enable=stacks
        )
        failure: MQError = Absent("member", client_id, f"in group {group!r}")
        code = client_calls.GET_CONSUMER_RUNNING_INFO.code
        wanted = RelayedCall(client_id, code.name, (group, stacks))
        for place in await self.places(group):
            ask = partial(
                self._wire.read,
                place.address,
                client_calls.GET_CONSUMER_RUNNING_INFO,
                header,
                timeout=_PATIENCE,
            )
            try:
                return await self._relayed.call(place.address, wanted, ask, patience)
            except MQError as error:
                failure = error
                if isinstance(error, RequestTimedOut) and error.address == client_id:
                    break  # patience has ended
        raise failure

    async def running(
        self, group: str, *, stacks: bool = False, patience: float | None = None
    ) -> Running:
        """Return what every member reports, asked one after another.

        Those slower than `patience` seconds are silent.

        Raises `Absent` if no broker has the group.
        """
        seen = (await self.connections(group)).some()
        clients = sorted({client for view in seen.values() for client in client_ids(view)})

        async def ask(client: str) -> client_calls.RunningInfo:
            return await self.running_info(group, client, stacks=stacks, patience=patience)

        outcomes = await self._wire.together(clients, ask)
        members: dict[str, client_calls.RunningInfo] = {}
        silent: dict[str, MQError] = {}
        for client, outcome in zip(clients, outcomes, strict=True):
            if isinstance(outcome, MQError):
                silent[client] = outcome
            else:
                members[client] = outcome
        return Running(members, silent)

    # Progress

    async def progress(self, group: str, topic: str | None = None) -> GroupProgress:
        """Return the progress of a group, in one topic or in all it has consumed.

        Raises `Absent` if no broker has the group, or the error if none answers.
        """
        gathered = (await self.stats_at(group, topic, await self.places(group))).some()
        found = {
            queue: progress
            for stats in gathered.values()
            for queue, progress in stats.offset_table.items()
        }
        for name in {queue.topic for queue in found}:
            found = await self._logical(name, found)
        tps = sum(stats.consume_tps for stats in gathered.values())
        queues = {queue: found[queue] for queue in sort_queues(set(found))}
        return GroupProgress(queues, tps, gathered.missing)

    async def _logical(self, topic: str, found: Progress) -> Progress:
        """Replace a static topic's physical queues by its logical ones."""
        try:
            known = await self._wire.session.routes.get(topic, self._wire.options.timeout)
        except MQError:
            return found
        if not known.route.topic_queue_mapping_by_broker:
            return found
        configs = await mapped_configs(self._wire, topic, places_of(known.route))
        others = {queue: each for queue, each in found.items() if queue.topic != topic}
        return others | logical_progress(topic, configs, found)

    async def stats_at(
        self, group: str, topic: str | None, places: list[ServerPlace]
    ) -> Gathered[ConsumeStatsBody]:
        """Return the progress of a group on some brokers."""
        header = GET_CONSUME_STATS.header(consumer_group=group, topic=topic)
        return await self._wire.read_each(places, GET_CONSUME_STATS, header, timeout=_PATIENCE)

    async def topics(self, group: str) -> Gathered[list[str]]:
        """Return the topics a group has consumed, for each broker."""
        header = rows.QUERY_TOPICS_BY_CONSUMER.header(group=group)
        places = await self.places(group)
        found = await self._wire.read_each(places, rows.QUERY_TOPICS_BY_CONSUMER, header)
        return found.map(lambda names: sorted(names.topic_list))


def client_ids(view: rows.ConsumerConnections) -> list[str]:
    """Return the client ids of the members that one broker lists."""
    return [each.client_id for each in view.connection_set if each.client_id is not None]
