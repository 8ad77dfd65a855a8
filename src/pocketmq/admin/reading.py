"""Reading queues without joining a group: nothing is committed."""

from enum import Enum

import msgspec

from pocketmq.admin.offsets import Offsets
from pocketmq.admin.wire import AdminWire
from pocketmq.client.damage import Suspicion
from pocketmq.client.filters import Filter, subscription_to
from pocketmq.client.questions.pulling import PullSpec, pull_once
from pocketmq.errors import MessagesCutShort
from pocketmq.model import MessageQueue, property_names
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.filter import tag_filter
from pocketmq.protocol.pulled import decode_pulled, from_offset

PAGE = 32
"""Messages of a page by default."""


class PageStatus(Enum):
    """The outcome of reading a queue, by Java's names."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


class Page(msgspec.Struct, frozen=True):
    """Consecutive messages of a queue, and where to continue."""

    status: PageStatus
    messages: list[ReceivedMessage]
    next_offset: int
    min_offset: int
    max_offset: int
    damaged: MessagesCutShort | None = None
    """The damage of the first message, which is skipped."""


class QueueReader:
    """Reads pages of queues."""

    def __init__(self, wire: AdminWire, offsets: Offsets) -> None:
        self._wire = wire
        self._offsets = offsets

    async def page(
        self,
        queue: MessageQueue,
        offset: int,
        count: int = PAGE,
        expression: str | Filter = "*",
    ) -> Page:
        """Return messages of a queue from an offset on, as many as a broker returns at once.

        A page ends before a damaged message; one that starts with it is empty and continues after.
        Raises `RouteNotFound`, `BrokerNotFound`, `FilterSyntaxError`.
        """
        suspicion = Suspicion()
        while True:
            page = await self._page(queue, offset, 1 if suspicion.alone else count, expression)
            if page.damaged is None:
                return page
            behind = suspicion.next_offset(queue, offset, page.next_offset, page.damaged)
            if behind != offset:
                return msgspec.structs.replace(page, next_offset=behind)

    async def between(
        self, queue: MessageQueue, begin_ms: int, end_ms: int, limit: int, expression: str | Filter
    ) -> list[ReceivedMessage]:
        """Return messages of a queue stored in a span of time, oldest first, at most `limit`."""
        first, last = await self._offsets.bounds(queue)
        if begin_ms > 0:
            first = await self._offsets.at_time(queue, begin_ms)
        messages: list[ReceivedMessage] = []
        while first < last and len(messages) < limit:
            page = await self.page(queue, first, min(PAGE, limit), expression)
            messages += page.messages
            late = bool(messages) and messages[-1].store_timestamp_ms > end_ms
            stuck = page.next_offset <= first or page.status is PageStatus.NO_NEW_MSG
            if late or stuck:
                break
            first = page.next_offset
        return [each for each in messages if each.store_timestamp_ms <= end_ms][:limit]

    async def _page(
        self, queue: MessageQueue, offset: int, count: int, expression: str | Filter
    ) -> Page:
        subscription = subscription_to(queue.topic, expression, self._wire.now_ms())
        wanted = PullSpec(
            self._wire.options.group,
            count,
            expression=subscription.sub_string,
            expression_type=subscription.expression_type,
            version=subscription.sub_version,
        )
        question = pull_once(queue, offset, wanted)
        pulled = await self._wire.run(question, self._offsets.address_of)
        status, messages = PageStatus(pulled.status.value), []
        next_offset, damaged = pulled.next_offset, None
        if status is PageStatus.FOUND:
            delivery = DeliveryContext(
                broker_name=queue.broker_name,
                queue_id=queue.queue_id,
                offset_delta=pulled.offset_delta,
                added={
                    property_names.MIN_OFFSET: str(pulled.min_offset),
                    property_names.MAX_OFFSET: str(pulled.max_offset),
                },
            )
            try:
                messages = decode_pulled(pulled.records, delivery)
            except MessagesCutShort as error:
                messages = error.decoded
                if messages:
                    next_offset = messages[-1].queue_offset + 1
                else:
                    damaged = error
            messages = from_offset(messages, offset)
            tags = tag_filter(subscription)
            messages = [message for message in messages if tags.matches_tag(message.tag)]
        return Page(status, messages, next_offset, pulled.min_offset, pulled.max_offset, damaged)
