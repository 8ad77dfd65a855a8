"""The queue loop by itself: what it does with decisions, answers and failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq.balance.consumer.instructions import Instruction, ReadOffset
from pocketmq.balance.consumer.pulling import PullLater, PullNow, StopPulling, WaitReason
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.queue_loop import QueueLoop
from pocketmq.errors import BrokerNotFound, MQError, NoPermission
from pocketmq.model import MessageQueue
from tests.client.servers import Directory, session_on
from tests.loops import leap, leaping, stopped_clock, until
from tests.net.peers import serving

QUEUE = MessageQueue("orders", "broker-a", 3)
FULL = PullLater(0.05, WaitReason.TOO_MANY_MESSAGES)
PAUSED = PullLater(1.0, WaitReason.PAUSED)
NOT_LOCKED = PullLater(1.0, WaitReason.NOT_LOCKED)


class Loop(QueueLoop[HeldQueue, str]):
    """A loop that is told what to decide, and what its broker answers."""

    steps: list[Instruction]
    answers: list[str | MQError]
    log: list[str]

    def next_step(self, held: HeldQueue) -> Instruction:
        return self.steps.pop(0) if self.steps else StopPulling()

    async def find_start(self, held: HeldQueue) -> float:
        self.log.append("find start")
        return 0.0

    async def ask(self, held: HeldQueue, step: Instruction) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, MQError):
            raise answer
        return answer

    def take(self, held: HeldQueue, answer: str) -> float | None:
        self.log.append(answer)
        return None if answer == "last" else 0.0

    def after_error(self, held: HeldQueue, code: int | None) -> float:
        self.log.append(f"error {code}")
        return 0.01


@asynccontextmanager
async def looping(
    steps: list[Instruction], answers: list[str | MQError]
) -> AsyncIterator[tuple[Loop, HeldQueue, Directory]]:
    directory = Directory({})
    async with serving(directory) as (_, names), session_on(names) as session:
        loop = Loop(session, "billing", session.tasks)
        loop.steps, loop.answers, loop.log = steps, answers, []
        yield loop, HeldQueue(QUEUE, "orders", 0, 0.0), directory


async def ended(held: HeldQueue) -> None:
    assert held.task is not None
    await asyncio.wait({held.task}, timeout=30)
    assert held.task.done()


async def test_a_loop_asks_until_it_is_told_to_stop_or_an_answer_is_the_last() -> None:
    steps: list[Instruction] = [ReadOffset(QUEUE), PullNow(), PullNow(), StopPulling(), PullNow()]
    async with looping(steps, ["one", "two"]) as (loop, held, _):
        loop.begin(held)
        await ended(held)
        assert loop.log == ["find start", "one", "two"]
        loop.steps, loop.answers = [PullNow(), PullNow()], ["last", "never"]
        loop.begin(held)
        await ended(held)
        assert loop.log[3:] == ["last"]


async def test_the_first_failure_in_a_row_is_a_warning_and_a_lost_broker_is_looked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone, refused = BrokerNotFound("broker-a"), NoPermission(16, "no")
    failures: list[str | MQError] = [gone, gone, "one", refused]
    async with looping([PullNow()] * 4, failures) as (loop, held, directory):
        asked = len(directory.requests)
        loop.begin(held)
        await ended(held)
        assert loop.log == ["error None", "error None", "one", "error 16"]
        await until(lambda: len(directory.requests) > asked, "a question for the route")
    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert [line.split(" error=")[0] for line in warned] == [
        "pull failed: group=billing topic=orders queue=broker-a:3"
    ] * 2, "the first of a row, and the first after an answer"


@leaping
@pytest.mark.parametrize(("step", "early"), [(FULL, True), (PAUSED, True), (NOT_LOCKED, False)])
async def test_waits_for_capacity_and_pauses_end_early_others_do_not(
    step: PullLater, *, early: bool
) -> None:
    async with looping([step, PullNow()], ["one"]) as (loop, held, _):
        with stopped_clock():
            loop.begin(held)
            await leap(0.001)
            held.wake()
            await leap(0.001)
            assert loop.log == (["one"] if early else [])
            await leap(step.after)
            assert loop.log == ["one"]


@leaping
async def test_a_loop_begun_anew_takes_the_place_of_the_one_that_runs() -> None:
    async with looping([NOT_LOCKED, PullNow()], ["one"]) as (loop, held, _):
        with stopped_clock():
            loop.begin(held)
            await leap(0.001)
            before = held.task
            loop.begin(held, 0.5)
            await leap(0.001)
            await leap(0.4)
            assert before is not None
            assert before.cancelled()
            assert loop.log == []
            await leap(0.2)
            assert loop.log == ["one"]
        loop.end(held)
