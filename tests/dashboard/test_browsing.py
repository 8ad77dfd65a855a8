"""A topic from its end, on a running cluster: pages, a filter, a live tail."""

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq import aio
from pocketmq.dashboard.browsing import reader as reading
from pocketmq.dashboard.browsing.reader import LONGEST, BrowsedPage, ContentFilter, TopicReader
from pocketmq.dashboard.pages.message_browser import described
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import InvalidInput, RouteNotFound
from pocketmq.model import MessageQueue, SysFlag
from tests.dashboard.stored import stored

ALL = ContentFilter()


class Counter:
    """A topic of two brokers, to which numbers are sent."""

    def __init__(self, cluster: Cluster, admin: aio.Admin, producer: aio.Producer) -> None:
        self.cluster = cluster
        self.admin = admin
        self.reader = TopicReader(admin, "numbers")
        self._producer = producer
        self._sent = 0

    async def send(self, count: int) -> None:
        for _ in range(count):
            self._sent += 1
            even = "even" if self._sent % 2 == 0 else "odd"
            body = b"number %d" % self._sent
            await self._producer.send(aio.Message("numbers", body, tag=even))


@asynccontextmanager
async def counter() -> AsyncIterator[Counter]:
    async with (
        Cluster(brokers=2) as cluster,
        aio.Admin(cluster.address) as admin,
        aio.Producer(cluster.address, group="counter") as producer,
    ):
        await cluster.create_topic("numbers", queues=3)
        yield Counter(cluster, admin, producer)


def times(page: BrowsedPage) -> list[int]:
    return [each.store_timestamp_ms for each in page.messages]


def numbers(page: BrowsedPage) -> set[int]:
    return {int(each.body.split()[1]) for each in page.messages}


async def test_pages_go_from_the_newest_to_the_oldest() -> None:
    async with counter() as here:
        await here.send(130)
        bounds = await here.reader.bounds()
        assert len(bounds.position) == 6
        first = await here.reader.page(bounds.position, ALL)
        assert times(first) == sorted(times(first), reverse=True)
        assert 130 in numbers(first)
        second = await here.reader.page(first.older, ALL)
        third = await here.reader.page(second.older, ALL)
        assert [len(each.messages) for each in (first, second, third)] == [50, 50, 30]
        assert min(times(first)) >= max(times(second)) >= min(times(second)) >= max(times(third))
        assert numbers(first) | numbers(second) | numbers(third) == set(range(1, 131))
        assert third.older == {}


async def test_a_filter_searches_back_until_it_has_found_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with counter() as here:
        await here.send(60)
        everything = (await here.reader.bounds()).position
        page = await here.reader.page(everything, ContentFilter.of("NUMBER 7"))
        assert (numbers(page), page.scanned, page.older) == ({7}, 60, {})
        page = await here.reader.page(everything, ContentFilter.of("even"), 10)
        assert len(page.messages) == 10
        assert all(each.tag == "even" for each in page.messages)
        assert page.scanned < 60
        monkeypatch.setattr(reading, "MOST_SCANNED", 20)
        page = await here.reader.page(everything, ContentFilter.of("number 1 "))
        assert (page.messages, page.scanned) == ([], 20)
        assert sum(end - first for first, end in page.older.values()) == 40


async def test_a_span_of_time_has_its_own_end() -> None:
    async with counter() as here:
        await here.send(12)
        page = await here.reader.page((await here.reader.bounds()).position, ALL)
        begin, end = times(page)[8], times(page)[3]
        span = await here.reader.bounds(begin, end)
        found = await here.reader.page(span.position, ALL)
        assert times(found) == [each for each in times(page) if begin <= each <= end]


async def test_a_tail_gives_what_has_come_and_counts_what_it_skips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with counter() as here:
        await here.send(6)
        bounds = await here.reader.bounds()
        ends = {queue: end for queue, (_, end) in bounds.position.items()}
        step = await here.reader.newer(ends)
        assert (step.messages, step.ends, step.skipped) == ([], ends, 0)
        await here.send(12)
        step = await here.reader.newer(step.ends)
        assert {each.body for each in step.messages} == {b"number %d" % n for n in range(7, 19)}
        assert [each.store_timestamp_ms for each in step.messages] == sorted(
            each.store_timestamp_ms for each in step.messages
        )
        assert (await here.reader.newer(step.ends)).messages == []
        monkeypatch.setattr(reading, "MOST_NEW", 1)
        await here.send(12)
        step = await here.reader.newer(step.ends)
        assert len(step.messages) + step.skipped == 12
        assert step.skipped >= 6
        made_anew = dict.fromkeys(step.ends, 1000)
        assert len((await here.reader.newer(made_anew)).messages) == 6


async def test_a_broker_that_is_down_is_named_and_the_others_are_read() -> None:
    async with counter() as here:
        await here.send(12)
        position = (await here.reader.bounds()).position
        await here.cluster.kill("broker-0")
        page = await here.reader.page(position, ALL)
        assert {each.broker_name for each in page.messages} == {"broker-1"}
        (missing,) = page.missing
        assert missing.startswith("broker-0: ")
        with pytest.raises(RouteNotFound):
            await TopicReader(here.admin, "nowhere").bounds()


def test_a_filter_looks_into_everything_an_application_sets() -> None:
    message = stored(
        b'{"city": "Z\xc3\xbcrich"}', TAGS="paid", KEYS="A1 B2", region="eu",
        UNIQ_KEY="7F", WAIT="true",
    )  # fmt: skip
    for text in ("zürich", "ZÜRICH", "paid", "b2", "region=EU", "EU", "  city "):
        assert ContentFilter.of(text).matches(message), text
    for text in ("bern", "region=us", "WAIT", "MIN_OFFSET", "TAGS=paid", "UNIQ_KEY"):
        assert not ContentFilter.of(text).matches(message), text
    with pytest.raises(InvalidInput, match="at most 1024"):
        ContentFilter.of("x" * (LONGEST + 1))


def test_a_compressed_body_is_searched_and_a_broken_one_contains_nothing() -> None:
    flag = int(SysFlag.COMPRESSED)
    assert ContentFilter.of("hello").matches(stored(zlib.compress(b"hello"), sys_flag=flag))
    assert not ContentFilter.of("hello").matches(stored(b"hello", sys_flag=flag))


def test_a_page_says_what_it_shows() -> None:
    older = {MessageQueue("T", "broker-a", 0): (0, 1200)}
    page = BrowsedPage([stored(at=0)], older, 1)
    assert described(page, ALL) == "1 message, newest first; stored – to –; 1,200 older."
    page = BrowsedPage([], older, 10_000)
    told = "0 of 10,000 messages searched match; 1,200 not searched yet."
    assert described(page, ContentFilter("x")) == told
    assert described(BrowsedPage([], {}, 0), ALL) == ""
