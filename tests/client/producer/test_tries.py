"""The rule for the tries of a send, without a connection: tries out, outcomes in."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import RoundRobin
from pocketmq.balance.profile import V5
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.tries import Outcome, SendRule, Tries, Try
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import ConnectionLost, InvalidInput, SendFailed, server_error
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus
from tests.client.producer.stage import stage

MESSAGE = Message("orders", b"42 EUR")
OUTGOING = Outgoing("orders", MESSAGE.body, "", "1", messages=(MESSAGE,))
A0, A1, B0, B1 = QUEUES = tuple(
    MessageQueue("orders", broker, number) for broker in ("a", "b") for number in (0, 1)
)
LOST = ConnectionLost("a:1", "gone")


def receipt(queue: MessageQueue, status: SendStatus = SendStatus.SEND_OK) -> SendReceipt:
    return SendReceipt(
        status=status, message_id="1", offset_message_id="2", queue=queue, queue_offset=7
    )


class Script:
    """A rule with a clock that a test moves, and a record of the routes it wants refreshed."""

    def __init__(self, producer: Any, **settings: Any) -> None:
        self.now = 100.0
        self.refreshed: list[str] = []
        self.sending = producer.sending
        self.rule = SendRule(
            ProducerOptions(group="shop", **settings),
            V5,
            self.sending.faults,
            self.sending.hooks,
            now=lambda: self.now,
            chance=lambda _: 0,
            refresh_route=self.refreshed.append,
        )
        self.publication = Publication("orders", RoundRobin(-1))
        self.publication.take(QUEUES)

    def tries(self, choice: Choice | None = None, mode: SendMode = SendMode.SYNC) -> Tries:
        return self.rule.tries(OUTGOING, self.publication, choice, mode, 3.0, self.now)

    def run(self, tries: Tries, outcomes: Iterator[Outcome]) -> tuple[list[Try], Any]:
        """Feed outcomes, one second apart; give all tries, and the receipt or the error."""
        made = [next(tries)]
        try:
            for outcome in outcomes:
                self.now += 1.0
                made.append(tries.send(outcome))
        except StopIteration as end:
            return made, end.value
        except SendFailed as error:
            return made, error
        raise AssertionError("the rule wants more tries than there are outcomes")


@asynccontextmanager
async def scripted() -> AsyncIterator[Script]:
    async with stage() as on:
        yield Script(on.producer)


async def test_a_message_that_is_stored_is_done() -> None:
    async with scripted() as script:
        assert script.run(script.tries(), iter([receipt(A0)])) == ([(A0, 3.0)], receipt(A0))
        assert script.run(script.tries(), iter([receipt(A1)])) == ([(A1, 3.0)], receipt(A1))


async def test_a_failed_try_goes_to_another_broker_in_the_time_that_is_left() -> None:
    async with scripted() as script:
        made, stored = script.run(script.tries(), iter([LOST, receipt(B0)]))
        assert (made, stored) == ([(A0, 3.0), (B0, 2.0)], receipt(B0))
        assert script.refreshed == ["orders"]


async def test_the_last_failure_says_how_often_it_was_tried() -> None:
    async with scripted() as script:
        busy = server_error(2, "busy", request="SEND", address="a:1")
        made, failed = script.run(script.tries(), iter([busy, LOST, LOST]))
        assert [queue for queue, _ in made] == [A0, B0, A0]
        assert isinstance(failed, SendFailed)
        assert (failed.attempts, failed.outcome_unknown) == (3, True)


async def test_a_chosen_queue_is_tried_once() -> None:
    async with scripted() as script:
        made, failed = script.run(script.tries(lambda queues: queues[3]), iter([LOST]))
        assert made == [(B1, 3.0)]
        assert isinstance(failed, SendFailed)


async def test_a_choice_that_raises_ends_the_send_before_its_first_try() -> None:
    async with scripted() as script:

        def refuse(_: object) -> MessageQueue:
            raise InvalidInput("none of them")

        with pytest.raises(InvalidInput, match="none of them"):
            next(script.tries(refuse))


async def test_a_message_sent_one_way_has_no_receipt() -> None:
    async with scripted() as script:
        assert script.run(script.tries(mode=SendMode.ONEWAY), iter([None])) == ([(A0, 3.0)], None)


async def test_what_is_stored_unsafely_is_stored_again_only_if_asked_for() -> None:
    unsafe = receipt(A0, SendStatus.FLUSH_DISK_TIMEOUT)
    async with stage() as on:
        made, stored = (once := Script(on.producer)).run(once.tries(), iter([unsafe]))
        assert (len(made), stored) == (1, unsafe)
        again = Script(on.producer, retry_when_not_stored_ok=True)
        made, stored = again.run(again.tries(), iter([unsafe, receipt(B0)]))
        assert (len(made), stored) == (2, receipt(B0))


async def test_a_try_without_an_outcome_is_not_held_against_the_broker() -> None:
    async with stage(avoid_slow_brokers=True) as on:
        script = Script(on.producer)
        tries = script.tries()
        assert next(tries) == (A0, 3.0)
        script.now += 1.0
        tries.close()  # the caller was cancelled
        (health,) = on.producer.sending.faults.health()
        assert (health.broker, health.reachable) == ("a", True)
        assert script.refreshed == []
