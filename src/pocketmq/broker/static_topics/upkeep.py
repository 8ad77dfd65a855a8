"""Ranges that are not needed any more: those without messages, and those of queues that moved on.

As in Java (TopicQueueMappingCleanService) the leader of a queue drops its oldest range once all
messages there have expired, and a broker that a queue has left drops its copy once the queue has
moved on again. Java does so in the hour of `deleteWhen`, this at any time. Belongs to the broker's
loop.
"""

import asyncio
import logging

import msgspec

from pocketmq.balance.static_topics.ranges import led_here
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState
from pocketmq.errors import MQError, ResponseCode
from pocketmq.model import MappedTopicConfig, MessageQueue, TopicMappingDetail
from pocketmq.model.topics import MappedRange
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.stats import TopicStatsBody

logger = logging.getLogger("pocketmq.broker")

PERIOD = 300.0
"""Seconds between two runs."""


class StaticTopicUpkeep:
    """Drops ranges periodically, on brokers with static topics."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the timer."""
        self._task = asyncio.create_task(self._run(), name="upkeep of static topics")

    async def stop(self) -> None:
        """Stop the timer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            await self.clean()

    async def clean(self) -> int:
        """Drop what is not needed; return the number of ranges."""
        dropped = 0
        for topic in list(self._state.mappings.entries):
            try:
                dropped += await self._clean(topic)
            except MQError as error:
                logger.info("upkeep of a static topic failed: topic=%s error=%s", topic, error)
        return dropped

    async def _clean(self, topic: str) -> int:
        detail = self._state.mappings.get(topic)
        if detail is None:
            return 0
        gone = await self._expired(topic, detail) | await self._left(topic, detail)
        if not gone or self._state.mappings.get(topic) is not detail:
            return 0  # the mapping was changed meanwhile: the next run looks at the new one
        hosted = {
            number: [part for part in parts if (number, part.gen) not in gone]
            for number, parts in detail.hosted_queues.items()
        }
        kept = {number: parts for number, parts in hosted.items() if parts}
        now_ms = self._state.clock.now_ms()
        detail = msgspec.structs.replace(detail, hosted_queues=kept)
        self._state.mappings.put(topic, detail, now_ms)
        save_changes(self._state)
        logger.info("dropped ranges of a static topic: topic=%s ranges=%d", topic, len(gone))
        return len(gone)

    async def _expired(self, topic: str, detail: TopicMappingDetail) -> set[tuple[int, int]]:
        """Return the oldest ranges of led queues in which there are no messages."""
        gone = set()
        for number in led_here(detail):
            parts = detail.hosted_queues[number]
            if len(parts) > 1 and await self._is_empty(topic, parts[0]):
                gone.add((number, parts[0].gen))
        return gone

    async def _is_empty(self, topic: str, part: MappedRange) -> bool:
        name = part.bname or ""
        if name == self._state.config.broker_name:
            queue = self._state.store.queue(topic, part.queue_id)
            return queue is None or queue.min_offset == queue.next_offset
        fields = {"topic": topic}
        code = RequestCode.GET_TOPIC_STATS_INFO
        answer = await self._state.neighbours.ask(topic, name, code, fields)
        if answer.code != ResponseCode.SUCCESS:
            return False
        table = decode_body(answer.body, TopicStatsBody).offset_table
        held = table.get(MessageQueue(topic, name, part.queue_id))
        return held is not None and held.max_offset in {held.min_offset, 0}

    async def _left(self, topic: str, detail: TopicMappingDetail) -> set[tuple[int, int]]:
        """Return the ranges of queues that are led by neither this broker nor the next one."""
        away = detail.hosted_queues.keys() - led_here(detail).keys()
        route = await self._state.neighbours.route(topic) if away else None
        if route is None:
            return set()
        leaders = {queue.queue_id: name for queue, name in route.leaders(topic).items()}
        known = {data.broker_name for data in route.broker_datas}
        gone = set()
        for number in away:
            parts, leader = detail.hosted_queues[number], leaders.get(number, "")
            if not parts or leader == parts[-1].bname or leader not in known:
                continue
            if await self._leads(topic, leader, number, detail):
                gone |= {(number, part.gen) for part in parts}
        return gone

    async def _leads(
        self, topic: str, leader: str, number: int, detail: TopicMappingDetail
    ) -> bool:
        """Return whether a broker itself says that it leads a queue, in this very mapping."""
        fields = {"topic": topic, "lo": "true"}
        code = RequestCode.GET_TOPIC_CONFIG
        answer = await self._state.neighbours.ask(topic, leader, code, fields)
        if answer.code != ResponseCode.SUCCESS:
            return False
        there = decode_body(answer.body, MappedTopicConfig).mapping_detail
        return (
            there is not None
            and (there.total_queues, there.epoch) == (detail.total_queues, detail.epoch)
            and number in led_here(there)
        )
