"""Reading a topic from its end: one page after another, what comes meanwhile, and what to select.

Joins no group and commits nothing. A queue whose broker does not respond is left out and named.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.browsing.newest_first import NewestFirst, Position, QueuePart
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.protocol import ReceivedMessage

LONGEST = 1024
"""Characters of a filter."""


class ContentFilter(msgspec.Struct, frozen=True):
    """Selects messages that contain a text, in whatever case; an empty text selects all.

    Searched are body, id, tag, keys, and the application's properties. `name=value` also
    selects by a property. A body that cannot be read contains nothing.
    """

    text: str = ""

    @classmethod
    def of(cls, text: str) -> "ContentFilter":
        """Return the filter for a text of a form. Raises `InvalidInput` if it is too long."""
        if len(text) > LONGEST:
            raise InvalidInput(f"a filter may have at most {LONGEST} characters")
        return cls(text.strip().casefold())

    def matches(self, message: ReceivedMessage) -> bool:
        """Return whether a message contains the text."""
        if not self.text:
            return True
        named = (f"{name}={value}" for name, value in message.user_properties.items())
        fields = (message.message_id, message.tag or "", *message.keys, *named)
        if any(self.text in field.casefold() for field in fields):
            return True
        try:
            body = message.body
        except (MQError, InvalidInput):
            return False
        return self.text in body.decode(errors="replace").casefold()


PAGE = 50
"""Messages of one page."""
MOST_SCANNED = 10_000
"""Messages that are searched for one page; the next page continues."""
MOST_BYTES = 64 << 20
"""Bytes that are searched for one page."""
MOST_NEW = 200
"""New messages of a queue that a tail reads at once; earlier ones are skipped, and counted."""
_TOGETHER = 16
"""Queues that are read at once."""
_SHORTEST_PART = 4


class BrowsedPage(msgspec.Struct, frozen=True):
    """Messages newest first, and where to continue."""

    messages: list[ReceivedMessage]
    older: Position
    """Where the next page continues; empty after the last one."""
    scanned: int
    """Messages that were compared with the filter."""
    missing: tuple[str, ...] = ()


class TopicBounds(msgspec.Struct, frozen=True):
    """The queues of a topic with the offsets they hold."""

    position: Position
    missing: tuple[str, ...]


class TailStep(msgspec.Struct, frozen=True):
    """Messages that have come, and the offsets to continue at."""

    messages: list[ReceivedMessage]
    ends: dict[MessageQueue, int]
    skipped: int = 0
    """Messages that came too fast to be read."""
    missing: tuple[str, ...] = ()


class TopicReader:
    """Reads one topic. Belongs to the loop of its admin."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._admin = admin
        self._topic = topic

    async def bounds(self, begin_ms: int = 0, end_ms: int | None = None) -> TopicBounds:
        """Return what each queue holds, or what it stored in a span of time.

        Raises `RouteNotFound`, and the error if no broker responds.
        """
        status = await self._admin.topics.status(self._topic)
        readable = (await self._admin.topics.route(self._topic)).subscribe_queues(self._topic)
        missing = [str(each) for each in status.missing]
        limit = asyncio.Semaphore(_TOGETHER)

        async def narrowed(queue: MessageQueue) -> tuple[int, int]:
            first, end = status.queues[queue].min_offset, status.queues[queue].max_offset
            async with limit:
                if begin_ms > 0 and end > first:
                    first = max(first, await self._admin.offsets.at_time(queue, begin_ms))
                if end_ms is not None and end > first:
                    end = min(end, await self._admin.offsets.at_time(queue, end_ms + 1))
            return first, end

        queues = [queue for queue in sort_queues(readable) if queue in status.queues]
        spans = await asyncio.gather(*map(narrowed, queues), return_exceptions=True)
        position: Position = {}
        for queue, span in zip(queues, spans, strict=True):
            if isinstance(span, MQError):
                missing.append(f"{queue.broker_name}: {span}")
            elif isinstance(span, BaseException):
                raise span
            else:
                position[queue] = span
        return TopicBounds(position, tuple(dict.fromkeys(missing)))

    async def page(
        self, position: Position, wanted: ContentFilter, count: int = PAGE
    ) -> BrowsedPage:
        """Return the newest messages of a position that pass the filter, at most `count`."""
        merge = NewestFirst(position, part_of(len(position), count))
        found: list[ReceivedMessage] = []
        missing: list[str] = []
        scanned = size = 0
        while len(found) < count and scanned < MOST_SCANNED and size < MOST_BYTES:
            message = merge.take()
            if message is not None:
                scanned, size = scanned + 1, size + message.store_size
                if wanted.matches(message):
                    found.append(message)
                continue
            parts = merge.wanted()
            if not parts:
                break
            missing += await self._feed(merge, parts)
        return BrowsedPage(found, merge.rest(), scanned, tuple(dict.fromkeys(missing)))

    async def oldest_first(
        self, position: Position, wanted: ContentFilter
    ) -> AsyncIterator[list[ReceivedMessage]]:
        """Yield the messages of a position that pass the filter, queue by queue.

        Raises the error of a broker that does not respond.
        """
        for queue, (first, end) in position.items():
            offset = first
            while offset < end:
                page = await self._admin.messages.page(queue, offset)
                found = [each for each in page.messages if each.queue_offset < end]
                found = [each for each in found if wanted.matches(each)]
                if found:
                    yield found
                if page.next_offset <= offset:
                    break
                offset = page.next_offset

    async def newer(self, ends: dict[MessageQueue, int]) -> TailStep:
        """Return what was stored at or after these offsets, oldest first.

        A queue that was not known yet is read from its beginning. Raises what `bounds` does.
        """
        bounds = await self.bounds()
        continued, parts, skipped = dict(ends), [], 0
        for queue, (first, end) in bounds.position.items():
            # A queue that ends before what was seen was made anew.
            since = first if ends.get(queue, 0) > end else max(first, ends.get(queue, 0))
            skipped += max(0, end - since - MOST_NEW)
            if end > since:
                parts.append(QueuePart(queue, max(since, end - MOST_NEW), end))
            continued[queue] = end
        merge = NewestFirst({each.queue: (each.first, each.end) for each in parts}, MOST_NEW)
        missing = await self._feed(merge, parts)
        messages = []
        while (message := merge.take()) is not None:
            messages.append(message)
        return TailStep(messages[::-1], continued, skipped, (*bounds.missing, *missing))

    async def _feed(self, merge: NewestFirst, parts: Iterable[QueuePart]) -> list[str]:
        """Read parts of queues; return the brokers that did not respond."""
        limit = asyncio.Semaphore(_TOGETHER)
        missing = []

        async def one(part: QueuePart) -> None:
            try:
                async with limit:
                    messages = await self._read(part)
            except MQError as error:
                merge.drop(part.queue)
                missing.append(f"{part.queue.broker_name}: {error}")
            else:
                merge.put(part, messages)

        await asyncio.gather(*map(one, parts))
        return missing

    async def _read(self, part: QueuePart) -> list[ReceivedMessage]:
        messages: list[ReceivedMessage] = []
        offset = part.first
        while offset < part.end:
            page = await self._admin.messages.page(part.queue, offset, part.end - offset)
            messages += page.messages
            if page.next_offset <= offset:
                break
            offset = page.next_offset
        return messages


def part_of(queues: int, count: int) -> int:
    """Return how many messages of each queue to read at once for a page of `count`."""
    return max(_SHORTEST_PART, min(count, 2 * count // max(1, queues)))
