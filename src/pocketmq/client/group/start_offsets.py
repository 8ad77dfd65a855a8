"""Finding where a queue starts: the questions of `balance.consumer.start_offset`, asked."""

from pocketmq.balance.consumer.instructions import AskMaxOffset, SearchOffset, UseOffset
from pocketmq.balance.consumer.start_offset import StartRule, after_answer, start_step
from pocketmq.client.group.offsets import OffsetStore, max_offset, offset_at
from pocketmq.client.session import Session
from pocketmq.model.queue import MessageQueue


async def start_offset(
    session: Session, offsets: OffsetStore, queue: MessageQueue, rule: StartRule
) -> int | None:
    """Give where a queue starts; None if that cannot be found out now."""
    step = start_step(queue, await offsets.read(queue), rule)
    if isinstance(step, AskMaxOffset | SearchOffset):
        step = after_answer(queue, await answer_to(session, step))
    return step.offset if isinstance(step, UseOffset) else None


async def answer_to(session: Session, step: AskMaxOffset | SearchOffset) -> int | None:
    """Ask the broker what a step wants to know; None if it does not say."""
    if isinstance(step, AskMaxOffset):
        return await max_offset(session, step.queue)
    return await offset_at(session, step.queue, step.timestamp_ms)
