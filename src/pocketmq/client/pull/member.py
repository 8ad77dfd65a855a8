"""A pull consumer as its session and brokers see it. Names are those of the wire."""

import asyncio
from collections.abc import Collection

from pocketmq.balance.consumer import schedule as when
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.pull.parts import PullParts
from pocketmq.client.pull.positions import Positions
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import ResponseCode, SystemFailure
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType
from pocketmq.model.members import ConsumerData
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.bodies.running import (
    PROP_CONSUME_TYPE,
    PROP_ORDERLY,
    PROP_START_TIMESTAMP,
    DirectConsumeResult,
    ProcessQueueInfo,
    RunningInfo,
)
from pocketmq.protocol.received import ReceivedMessage


class PullMember:
    """Answers for a pull consumer, and passes on what calls for a rebalance."""

    def __init__(self, parts: PullParts, positions: Positions, rebalancing: Rebalancing) -> None:
        self._parts = parts
        self._positions = positions
        self._rebalancing = rebalancing
        self._started_at_ms = parts.session.clock.now_ms()
        self.group = parts.group

    def topics(self) -> Collection[str]:
        """List the topics whose routes shall be kept fresh, of queues assigned by hand, too."""
        parts = self._parts
        by_hand = {queue.topic for queue in parts.assignment.queues()}
        return {*parts.subscriptions.topics(), *by_hand}

    def consumer_data(self) -> ConsumerData:
        """Say what heartbeats tell brokers; where it begins is its own business, as in Java."""
        parts = self._parts
        return ConsumerData(
            group_name=parts.group,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            message_model=parts.options.model,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            subscription_data_set=list(parts.subscriptions.all()),
            unit_mode=parts.options.unit_mode,
        )

    def on_route_changed(self, known: KnownRoute) -> None:
        """Share out anew if the queues are others."""
        if self._parts.subscriptions.get(known.topic) is not None:
            self._rebalancing.route_changed(known)

    def on_ids_changed(self) -> None:
        """Share out anew."""
        self._rebalancing.tell(when.IdsChanged())

    def on_broker_active(self, address: str) -> None:
        """Share out anew once the broker knows us."""
        self._rebalancing.tell(when.BrokerChannelActive(address))

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Go on from these offsets. Java's pull consumer does nothing here."""
        for queue, offset in offsets.items():
            assigned = self._parts.assignment.get(queue)
            if queue.topic == topic and assigned is not None and offset >= 0:
                self._positions.go_to(assigned, offset)
                self._parts.offsets.table.update(queue, offset, increase_only=False)

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:
        """Give the offsets noted for a topic."""
        return self._parts.offsets.table.of_topic(topic)

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:  # noqa: ARG002 - a member's
        """Give an account of the consumer."""
        parts = self._parts
        return RunningInfo(
            properties={
                PROP_CONSUME_TYPE: ConsumeType.CONSUME_ACTIVELY.value,
                PROP_ORDERLY: "false",
                PROP_START_TIMESTAMP: str(self._started_at_ms),
            },
            subscription_set=list(parts.subscriptions.all()),
            mq_table={each.queue: self._queue_info(each.queue) for each in parts.assignment},
        )

    def _queue_info(self, queue: MessageQueue) -> ProcessQueueInfo:
        assigned = self._parts.assignment.get(queue)
        assert assigned is not None
        info = assigned.held.process.info()
        wall, now = self._parts.session.clock.now(), asyncio.get_running_loop().time()
        return ProcessQueueInfo(
            commit_offset=self._parts.offsets.table.read(queue),
            cached_msg_min_offset=info.cached_min_offset,
            cached_msg_max_offset=info.cached_max_offset,
            cached_msg_count=info.cached_count,
            cached_msg_size_in_mib=info.cached_size_mib,
            locked=info.locked,
            last_lock_timestamp=int((wall - now + info.last_lock) * 1000),
            dropped=info.dropped,
            last_pull_timestamp=int((wall - now + info.last_pull) * 1000),
            last_consume_timestamp=int((wall - now + info.last_consume) * 1000),
        )

    async def consume_directly(
        self,
        message: ReceivedMessage,  # noqa: ARG002 - a member's
        broker_name: str | None,  # noqa: ARG002 - a member's
    ) -> DirectConsumeResult:
        """Refuse: there is no handler."""
        raise SystemFailure(ResponseCode.SYSTEM_ERROR, "a pull consumer has no handler")
