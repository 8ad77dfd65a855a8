"""Retry rules: verdicts as a table, and what brokers and queues make of them."""

import asyncio
import logging
from typing import Any

import pytest

from pocketmq import Consumed, DeadLetter, RetryLater, RetryRule, aio
from pocketmq.client.push.handlers import Failure, Handler
from pocketmq.client.push.retry_rule import level_of, ruled
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageRequestMode
from tests.client.group.groups import Member, cluster, member, send
from tests.client.push.stands import messages
from tests.client.push.test_retries import AT_ONCE, DEAD, SOON
from tests.loops import until

ERROR = ValueError("no price")
RULE = RetryRule(attempts=4, delays=(1, 5, 30), hopeless=(KeyError, LookupError))


@pytest.mark.parametrize(
    ("raised", "failures", "expected"),
    [
        (ERROR, 0, (3, 1, 1)),
        (ERROR, 1, (3, 2, 5)),
        (ERROR, 2, (3, 4, 30)),
        (ERROR, 7, (3, 4, 30)),
        (KeyError("item"), 0, (0, -1, None)),
        (IndexError(), 0, (0, -1, None)),
        (DeadLetter(), 0, (0, -1, None)),
        (RetryLater(9), 0, (3, 9, None)),
        (RetryLater(wait=2.0), 0, (3, 0, 2.0)),
        (Consumed.RETRY, 1, (3, 2, 5)),
    ],
)
async def test_a_rule_judges_what_a_handler_raises_or_returns(
    raised: Any, failures: int, expected: tuple[int, int, float | None]
) -> None:
    def handle(message: object) -> object:
        if isinstance(raised, Exception):
            raise raised
        return raised

    async def handle_async(message: object) -> object:
        return handle(message)

    given = messages(1, reconsume_times=failures)
    plain = Handler(ruled(handle, RULE, batch=False))
    coroutine = Handler(ruled(handle_async, RULE, batch=False))
    assert coroutine.is_async
    for failure in (plain.call(given), await coroutine.call_async(given)):
        assert failure is not None
        assert (failure.limit, failure.delay_level, failure.wait) == expected


async def test_what_succeeds_or_is_cancelled_is_left_alone() -> None:
    async def cancelled(message: object) -> None:
        raise asyncio.CancelledError

    assert Handler(ruled(lambda message: Consumed.OK, RULE, batch=False)).call(messages(1)) is None
    with pytest.raises(asyncio.CancelledError):
        await Handler(ruled(cancelled, RULE, batch=False)).call_async(messages(1))


def test_a_list_waits_as_long_as_its_oldest_message() -> None:
    given = [*messages(1), *messages(1, 1, reconsume_times=2)]
    failure = Handler(ruled(lambda some: RetryLater(done=1), RULE, batch=True), batch=True).call(
        given
    )
    assert failure is not None
    assert (failure.delay_level, failure.done) == (4, 1)


def test_the_error_is_logged_as_the_handlers_own() -> None:
    def fails(message: object) -> None:
        raise ERROR

    failure = Handler(ruled(fails, RetryRule(attempts=2), batch=False)).call(messages(1))
    assert failure == Failure("handler raised ValueError: no price", ERROR, limit=1)


def test_delays_grow_by_a_factor_up_to_a_limit() -> None:
    assert RetryRule.exponential(6, first=1, factor=3, longest=20).delays == (1, 3, 9, 20, 20)
    assert RetryRule.exponential(1).delays == ()
    assert RetryRule.exponential(400, factor=10).delays[-1] == 7200


def test_seconds_are_rounded_up_to_delay_levels() -> None:
    seconds = (0, 0.5, 1, 1.1, 5, 29, 600, 601, 7200, 9999)
    assert [level_of(each) for each in seconds] == [1, 1, 1, 2, 2, 4, 14, 15, 18, 18]


def test_rules_that_cannot_be_kept_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"attempts": 0}, "attempts"),
        ({"delays": (-1,)}, "delays"),
        ({"delays": (7201,)}, "delays must be at most 7200 seconds"),
        ({"hopeless": ("ValueError",)}, "hopeless must be a tuple of exception classes"),
    ]
    for settings, text in cases:
        with pytest.raises(InvalidInput, match=text):
            RetryRule(**settings)
    with pytest.raises(InvalidInput, match="factor"):
        RetryRule.exponential(factor=0.5)
    consumer, wrong = aio.PushConsumer("127.0.0.1:9876", group="g"), Any
    with pytest.raises(InvalidInput, match="retry must be a RetryRule, not a"):
        consumer.subscribe("orders", "*", print, retry=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [{}, {"orderly": True}, {"client_rebalance": False}],
    ids=["concurrent", "orderly", "popped"],
)
async def test_after_its_attempts_or_a_hopeless_error_a_message_is_a_dead_letter(
    settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[tuple[bytes, int]] = []

    def handle(message: Any) -> None:
        tries.append((message.body, message.reconsume_times))
        if message.body == b"0":
            raise KeyError("hopeless")
        if message.body == b"1":
            raise ERROR

    caplog.set_level(logging.CRITICAL, "pocketmq.client")
    async with cluster(1, 1, config=AT_ONCE) as running:
        consuming = Member(running.address, "a", **{**SOON, **settings})
        # Popped and orderly messages wait for the seconds themselves.
        rule = RetryRule(attempts=3, delays=(0.01,), hopeless=(KeyError,))
        consuming.consumer.subscribe("orders", "*", handle, retry=rule)
        if "client_rebalance" in settings:
            async with aio.Admin(running.address) as admin:
                pop = MessageRequestMode.POP
                await admin.groups.set_mode("orders", "billing", pop, "DefaultCluster")
        await send(running.address, 3)
        async with consuming.consumer, member(
            running.address, "dead", group="readers", topics=(DEAD,), **SOON
        ) as dead:  # fmt: skip
            await until(lambda: len(dead.got) == 2, "the dead letters", 20)
            await until(lambda: (b"2", 0) in tries, "the last one")
        assert sorted(dead.bodies) == [b"0", b"1"]
        assert sorted(tries) == [(b"0", 0), (b"1", 0), (b"1", 1), (b"1", 2), (b"2", 0)]
