"""Questions asked by a client on its event loop."""

from typing import TypeVar

from pocketmq.client.questions.asking import Ask, Question, run
from pocketmq.client.session import Session
from pocketmq.errors import BrokerNotFound, NotLeader
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command

T = TypeVar("T")

QUEUE_TIMEOUT = 5.0
"""Seconds for a question about a queue, as in Java."""


async def ask_session(session: Session, question: Question[T], *, master_only: bool = False) -> T:
    """Ask the brokers of the queues that a question is about.

    Without an address of a queue's broker, or if the queue has moved to another one, its route is
    fetched once; without that of its master, a slave is asked unless `master_only`. Raises
    `BrokerNotFound`, `ServerError`, `TransportError`, and what the question does.
    """

    async def carry(asked: Ask) -> Command:
        queue = asked.queue
        if queue is None:
            raise TypeError("a question for name servers; ask the session's routes")
        try:
            return await _call(session, queue, asked, master_only=master_only)
        except (BrokerNotFound, NotLeader):
            await session.fetch_routes([queue.topic])
        return await _call(session, queue, asked, master_only=master_only)

    return await run(question, carry)


async def _call(session: Session, queue: MessageQueue, asked: Ask, *, master_only: bool) -> Command:
    return await session.brokers.call(
        session.addresses.holder(queue),
        asked.code,
        asked.header,
        asked.body,
        timeout=QUEUE_TIMEOUT if asked.timeout is None else asked.timeout,
        master_only=master_only,
        accept=asked.accept,
    )
