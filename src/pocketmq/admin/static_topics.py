"""Static topics: created, given more queues, moved to other brokers; their offsets.

The steps are mqadmin's (MQAdminUtils), in an order in which no message gets lost: first the new
brokers take messages of a queue, then the old ones refuse them, then it is decided where the
offsets of the queue continue.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.balance.static_topics import ranges
from pocketmq.balance.static_topics.checks import check_alike, led_queues
from pocketmq.balance.static_topics.plans import completed, creation_plan, moving_plan
from pocketmq.errors import Absent, BrokerNotFound, InvalidInput, MappingRefused, TopicNotFound
from pocketmq.model import MessageQueue
from pocketmq.model.names import AUTO_CREATE_TOPIC, check_topic
from pocketmq.model.topics import MappedRange, MappedTopicConfig, TopicMappingPlan
from pocketmq.protocol.requests import topics as rows

BLOCK = 10_000
"""Offsets of a queue that moves continue at a multiple of this."""


class StaticTopicChange(msgspec.Struct, frozen=True):
    """The mapping of a static topic before and after a change; `before` may be empty."""

    before: TopicMappingPlan
    after: TopicMappingPlan


class StaticTopics:
    """Creates and moves static topics; asks and changes all brokers of the clusters."""

    def __init__(self, wire: AdminWire, brokers: Brokers) -> None:
        self._wire = wire
        self._brokers = brokers

    async def configs(self, topic: str) -> dict[str, MappedTopicConfig]:
        """Return a topic's set-up with its mapping, by broker. Raises `MQError`."""
        header = rows.GET_TOPIC_CONFIG.header(topic=topic, lo=True)
        places = await self._brokers.masters()
        found = await self._wire.read_each(places, rows.GET_TOPIC_CONFIG, header)
        found = found.without(lambda error: isinstance(error, TopicNotFound))
        found.all()
        return {each.place.broker: each.value for each in found}

    async def create(
        self,
        topic: str,
        queues: int,
        brokers: Collection[str] = (),
        clusters: Collection[str] = (),
    ) -> StaticTopicChange:
        """Create a static topic on brokers or clusters, or add queues up to a number.

        Raises `NameInvalid`, `MappingRefused`, `Absent`, `InvalidInput`, and what a broker refuses.
        """
        check_topic(topic)
        targets = await self._targets(brokers, clusters)
        known = await self.configs(topic)
        epoch = check_alike(topic, known)[0] if known else self._wire.now_ms()
        plan = creation_plan(topic, queues, targets | known.keys(), known, self._wire.now_ms())
        await self.apply(plan)
        return StaticTopicChange(_as_plan(topic, epoch, known), plan)

    async def move(
        self, topic: str, brokers: Collection[str] = (), clusters: Collection[str] = ()
    ) -> StaticTopicChange:
        """Move the queues of a static topic to brokers or clusters. Raises as `create` does."""
        targets = await self._targets(brokers, clusters)
        known = await self.configs(topic)
        if not known:
            raise MappingRefused("No topic route to do the remapping")
        epoch = check_alike(topic, known)[0]
        plan = moving_plan(topic, targets, known, self._wire.now_ms())
        await self.apply(plan)
        return StaticTopicChange(_as_plan(topic, epoch, known), plan)

    async def apply(self, plan: TopicMappingPlan, *, force: bool = False) -> None:
        """Carry out a plan, such as one of a file; `force` replaces what brokers have.

        Raises `MappingRefused`, `BrokerNotFound`, and what a broker refuses.
        """
        check_alike(plan.topic, plan.broker_config_map)
        led_queues(plan.broker_config_map.values())
        masters = {place.broker: place for place in await self._brokers.masters()}
        own = {masters[name].cluster for name in plan.broker_config_map if name in masters}
        others = sorted(name for name, place in masters.items() if place.cluster in own)
        plan = completed(plan, others)
        absent = plan.broker_config_map.keys() - masters.keys()
        if absent:
            raise BrokerNotFound(min(absent))
        steps = _Steps(self._wire, masters, plan, force=force)
        if plan.broker_to_map_in:
            await steps.move()
        else:
            await steps.write(sorted(plan.broker_config_map))

    async def _targets(self, brokers: Collection[str], clusters: Collection[str]) -> set[str]:
        masters = await self._brokers.masters()
        names = {place.broker for place in masters}
        for broker in brokers:
            if broker not in names:
                raise Absent("broker", broker, f"the brokers are {', '.join(sorted(names))}")
        chosen = set(brokers) | {each.broker for each in masters if each.cluster in clusters}
        if not chosen:
            raise InvalidInput("no broker was found; name brokers, or a cluster that has some")
        return chosen


class _Steps:
    """The requests that carry a plan out."""

    def __init__(
        self,
        wire: AdminWire,
        masters: Mapping[str, ServerPlace],
        plan: TopicMappingPlan,
        *,
        force: bool,
    ) -> None:
        self._wire = wire
        self._masters = masters
        self._plan = plan
        self._configs = dict(plan.broker_config_map)
        self._force = force

    async def write(self, brokers: Iterable[str]) -> None:
        """Send brokers their mappings, one after the other."""
        for name in brokers:
            config = self._configs[name]
            detail = config.mapping_detail
            assert detail is not None  # checked with the plan
            header = rows.UPDATE_AND_CREATE_STATIC_TOPIC.header(
                topic=config.topic_name,
                default_topic=AUTO_CREATE_TOPIC,
                read_queue_nums=config.read_queue_nums,
                write_queue_nums=config.write_queue_nums,
                perm=config.perm,
                topic_filter_type=config.topic_filter_type.value,
                topic_sys_flag=config.topic_sys_flag,
                order=config.order,
                force=self._force,
            )
            address = self._masters[name].address
            await self._wire.call(address, rows.UPDATE_AND_CREATE_STATIC_TOPIC, header, detail)

    async def move(self) -> None:
        """Let new brokers take messages, old ones refuse them; then decide the offsets."""
        gaining, losing = self._plan.broker_to_map_in, self._plan.broker_to_map_out
        await self.write(gaining)
        await self.write(losing)
        for broker in losing:
            await self._decide(broker)
        await self.write(gaining)
        await self.write(sorted(self._configs.keys() - {*gaining, *losing}))

    async def _decide(self, broker: str) -> None:
        """Set where the offsets of the queues continue that a broker has led so far."""
        topic = self._plan.topic
        header = rows.GET_TOPIC_STATS_INFO.header(topic=topic)
        address = self._masters[broker].address
        stats = await self._wire.read(address, rows.GET_TOPIC_STATS_INFO, header)
        detail = self._configs[broker].mapping_detail
        for number, parts in ({} if detail is None else detail.hosted_queues).items():
            if len(parts) < 2 or parts[-1].logic_offset > 0 or parts[-2].bname != broker:
                continue
            old = parts[-2]
            held = stats.offset_table.get(MessageQueue(topic, broker, old.queue_id))
            if held is None:
                raise MappingRefused(f"Cannot get the max offset for old leader {old}")
            end = ranges.exactly(old, held.max_offset)
            start = ranges.rounded_up(end, BLOCK)
            self._put(number, [*parts[:-1], msgspec.structs.replace(parts[-1], logic_offset=start)])

    def _put(self, number: int, parts: list[MappedRange]) -> None:
        name = parts[-1].bname or ""
        config = self._configs[name]
        assert config.mapping_detail is not None
        hosted = {**config.mapping_detail.hosted_queues, number: parts}
        detail = msgspec.structs.replace(config.mapping_detail, hosted_queues=hosted)
        self._configs[name] = msgspec.structs.replace(config, mapping_detail=detail)


def _as_plan(topic: str, epoch: int, configs: Mapping[str, MappedTopicConfig]) -> TopicMappingPlan:
    return TopicMappingPlan(
        topic=topic, type="CREATE_OR_UPDATE", epoch=epoch, broker_config_map=dict(configs)
    )
