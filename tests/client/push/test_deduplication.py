"""Deduplication around handlers: alone, in lists, with failures; and on a cluster."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pocketmq import Claim, Deduplicate, MemoryDedup, RetryLater, SqliteDedup, aio
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.deduplication import deduplicated
from pocketmq.client.push.handlers import Failure, Handler, HandlerFailure
from pocketmq.errors import InvalidInput
from pocketmq.model import Message
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import Member, cluster
from tests.client.push.stands import messages
from tests.client.push.test_retries import AT_ONCE, SOON
from tests.loops import until

ONE, TWO, THREE = messages(3)
NAMES = {ONE.message_id: "one", TWO.message_id: "two", THREE.message_id: "three"}


def handler_of(
    function: Any, store: Any = None, *, batch: bool = False, key: Any = None
) -> Handler:
    rule = Deduplicate(store or MemoryDedup(), **({} if key is None else {"key": key}))
    made = deduplicated(function, rule, group="billing", topic="orders", batch=batch)
    return Handler(made, batch=batch)


async def test_a_message_that_comes_twice_is_handled_once(tmp_path: Path) -> None:
    got: list[ReceivedMessage] = []

    async def coroutine(message: ReceivedMessage) -> None:
        got.append(message)

    file = SqliteDedup(tmp_path / "h.db")
    for store in (MemoryDedup(), file):
        got.clear()
        plain, later = handler_of(got.append, store), handler_of(coroutine, store)
        assert later.is_async
        for message in (ONE, TWO, ONE):
            assert plain.call([message]) is None
            assert await later.call_async([message]) is None
        assert got == [ONE, TWO]
    file.close()


async def test_a_message_that_failed_is_handled_again() -> None:
    tries: list[ReceivedMessage] = []

    def handle(message: ReceivedMessage) -> None:
        tries.append(message)
        if len(tries) < 3:
            raise ValueError("no price")

    async def coroutine(message: ReceivedMessage) -> None:
        handle(message)

    plain, later = handler_of(handle), handler_of(coroutine)
    for _ in range(2):
        failure = plain.call([ONE])
        assert failure is not None
        assert isinstance(failure.error, ValueError)
    assert plain.call([ONE]) is None
    tries.clear()
    assert isinstance((await later.call_async([ONE]) or Failure("")).error, ValueError)
    assert (await later.call_async([ONE])) is not None
    assert (await later.call_async([ONE])) is None
    assert len(tries) == 3


async def test_what_another_call_is_handling_is_retried_soon() -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def slow(message: ReceivedMessage) -> None:
        began.set()
        await go.wait()

    handler = handler_of(slow)
    first = asyncio.create_task(handler.call_async([ONE]))
    await began.wait()
    failure = await handler.call_async([ONE])
    assert failure is not None
    assert (failure.delay_level, failure.error) == (1, None)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.set()
    assert await handler.call_async([ONE]) is None


def names(some: list[ReceivedMessage]) -> str:
    return " ".join(NAMES[message.message_id] for message in some)


class Lists:
    """A handler of lists whose results are set beforehand."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.got: list[str] = []

    def handle(self, some: list[ReceivedMessage]) -> object:
        self.got.append(names(some))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_of_a_list_only_new_messages_are_handled() -> None:
    lists = Lists(None, None, RetryLater(5, done=1), None)
    store = MemoryDedup()
    handler = handler_of(lists.handle, store, batch=True)
    assert handler.call([TWO]) is None
    assert handler.call([ONE, TWO]) is None
    assert handler.call([TWO, ONE]) is None
    assert lists.got == ["two", "one"], "a handler is not called with an empty list"
    store = MemoryDedup()
    handler = handler_of(lists.handle, store, batch=True)
    store.claim(f"billing\torders\t{ONE.message_id}")
    store.done(f"billing\torders\t{ONE.message_id}")
    failure = handler.call([ONE, TWO, THREE])
    assert failure is not None
    assert (failure.only, failure.done, failure.delay_level) == (frozenset({2}), 0, 5)
    assert handler.call([THREE, TWO]) is None
    assert lists.got[2:] == ["two three", "three"]


def test_the_verdict_about_a_list_is_about_the_right_messages() -> None:
    store = MemoryDedup()
    bad = HandlerFailure(Failure("bad", only=frozenset({0}), delay_level=-1, limit=0))
    lists = Lists(bad, ValueError("no price"), bad, None)
    handler = handler_of(lists.handle, store, batch=True)
    store.claim(f"billing\torders\t{ONE.message_id}")
    store.done(f"billing\torders\t{ONE.message_id}")
    failure = handler.call([ONE, TWO, THREE])
    assert failure is not None
    assert (failure.only, failure.limit, failure.delay_level) == (frozenset({1}), 0, -1)
    failure = handler.call([TWO])
    assert failure is not None
    assert failure.only is None
    assert isinstance(failure.error, ValueError)
    busy = MemoryDedup()
    busy.claim(f"billing\torders\t{THREE.message_id}")
    handler = handler_of(lists.handle, busy, batch=True)
    failure = handler.call([ONE, TWO, THREE])
    assert failure is not None
    assert (failure.only, failure.limit) == (frozenset({0, 2}), None), (
        "the busy one is no dead letter"
    )
    failure = handler.call([ONE, THREE])
    assert failure is not None
    assert (failure.only, failure.delay_level) == (frozenset({1}), 1)
    assert lists.got == ["two three", "two", "one two", "one"]


def test_a_key_decides_what_is_the_same() -> None:
    got: list[ReceivedMessage] = []
    keyed = messages(2, KEYS="A17")
    handler = handler_of(got.append, key=lambda message: message.keys[0])
    assert handler.call(keyed[:1]) is handler.call(keyed[1:]) is None
    assert got == keyed[:1]
    handler = handler_of(got.append, key=lambda message: None)
    assert handler.call([ONE]) is handler.call([ONE]) is None
    assert got[1:] == [ONE, ONE]
    failure = handler_of(got.append, key=lambda message: 7).call([ONE])
    assert failure is not None
    assert "the key of a message must be text or None" in failure.reason


def test_groups_and_topics_do_not_share_keys() -> None:
    store, got = MemoryDedup(), list[object]()
    rule = Deduplicate(store)
    for group, topic in (("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")):
        deduplicated(got.append, rule, group=group, topic=topic, batch=False)(ONE)
    assert len(got) == 3


class Broken:
    """A store that fails with the second key."""

    blocks = False

    def __init__(self) -> None:
        self.calls: list[str] = []

    def claim(self, key: str) -> Claim:
        self.calls.append("claim")
        if len(self.calls) == 2:
            raise OSError("disk full")
        return Claim.NEW

    def done(self, key: str) -> None:
        self.calls.append("done")

    def release(self, key: str) -> None:
        self.calls.append("release")


def test_a_store_that_fails_leaves_no_claim_and_calls_no_handler() -> None:
    store, lists = Broken(), Lists()
    failure = handler_of(lists.handle, store, batch=True).call([ONE, TWO])
    assert failure is not None
    assert isinstance(failure.error, OSError)
    assert store.calls == ["claim", "claim", "release"]
    assert lists.got == []


def test_mistakes_are_refused() -> None:
    wrong: Any = 7
    with pytest.raises(InvalidInput, match="key must be a function"):
        Deduplicate(MemoryDedup(), wrong)
    with pytest.raises(InvalidInput, match="a store must have claim, done and release"):
        Deduplicate(wrong)
    with pytest.raises(InvalidInput, match="deduplicate must be a Deduplicate, not a MemoryDedup"):
        aio.PushConsumer("127.0.0.1:9876", group="g").subscribe(
            "orders", "*", print, deduplicate=MemoryDedup()  # type: ignore[arg-type]
        )  # fmt: skip


async def test_two_consumers_of_a_cluster_share_a_file(tmp_path: Path) -> None:
    handled: Counter[bytes] = Counter()

    def handle(message: ReceivedMessage) -> None:
        handled[message.body] += 1

    async with (
        cluster(config=AT_ONCE) as running,
        Producer(running.address, group="shop") as producer,
    ):
        for number in range(40):  # each twice, in any queue
            await producer.submit(
                Message("orders", b"%d" % (number % 20), keys=[f"A{number % 20}"])
            )
        stores = [SqliteDedup(tmp_path / "handled.db") for _ in range(2)]
        soon: dict[str, Any] = {**SOON}
        members = [Member(running.address, name, **soon) for name in "ab"]
        for one, store in zip(members, stores, strict=True):
            rule = Deduplicate(store, key=lambda message: message.keys[0])
            one.consumer.subscribe("orders", "*", handle, deduplicate=rule)
        async with members[0].consumer, members[1].consumer:
            await until(lambda: len(handled) == 20, "all messages")
            await until(lambda: _read(members) >= 40, "all copies")
        for store in stores:
            store.close()
    assert set(handled.values()) == {1}


def _read(members: list[Member]) -> int:
    total = 0
    for one in members:
        joined = one.consumer._life.member
        if joined is not None:
            work: Any = joined.parts.work
            for topic in ("orders", "%RETRY%billing"):
                total += int(work.stats.of(topic).ok.value)
    return total
