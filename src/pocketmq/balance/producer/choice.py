"""Choosing the queue for a message: round robin, the broker to avoid, and the fault table.

The order in which queues are checked, and how far the round-robin index advances, are Java's: a
Java producer at the same index picks the same queue. A chosen queue is always one of those given.
"""

from collections.abc import Sequence

from pocketmq.balance.producer.fault_table import FaultTable
from pocketmq.balance.producer.plan import Aim, Send
from pocketmq.balance.producer.selectors import Chance, RoundRobin
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue

_OVERFLOW = 1 << 31


def choose_queue(
    queues: Sequence[MessageQueue],
    robin: RoundRobin,
    faults: FaultTable | None = None,
    *,
    now: float = 0.0,
    avoid: str | None = None,
    restart: Chance | None = None,
) -> MessageQueue:
    """Choose a queue; `avoid` is the broker of the last try, None at the first.

    Without a fault table queues take turns, and a retry goes to another broker if there is one.
    With one, 4.x takes the first queue of an available broker (even the one to avoid), 5.x looks
    for an available and then for a reachable one among the other brokers. `restart` is passed for
    the retry of a synchronous send; only 5.x with a fault table uses it.

    Raises `InvalidInput` when there are no queues.
    """
    if not queues:
        raise InvalidInput("the topic has no queues to send to")
    if faults is not None:
        if not faults.rules.tracks_reachability:
            return _choose_4x(queues, robin, faults, now)
        if restart is not None:
            robin.restart(restart)
        return _choose_5x(queues, robin, faults, now, avoid)
    if avoid is None:
        return robin.next(queues)
    return robin.next_avoiding(queues, avoid)


def queue_for(
    send: Send,
    queues: Sequence[MessageQueue],
    robin: RoundRobin,
    faults: FaultTable | None,
    *,
    now: float,
    chance: Chance,
    chosen: MessageQueue | None = None,
) -> MessageQueue:
    """Carry out a `Send`'s aim. `chosen` is the queue of a pinned send.

    Raises `InvalidInput` when there are no queues, or no chosen one for a pinned send.
    """
    if send.aim is Aim.CHOSEN_QUEUE:
        if chosen is None:
            raise InvalidInput("a send pinned to a queue needs that queue")
        return chosen
    restart = chance if send.restart else None
    queue = choose_queue(queues, robin, faults, now=now, avoid=send.avoid, restart=restart)
    if send.queue_id is None:
        return queue
    # Java keeps the id even where the other broker has fewer queues and will refuse it.
    kept = MessageQueue(queue.topic, queue.broker_name, send.queue_id)
    return kept if kept in queues else queue


def _choose_5x(
    queues: Sequence[MessageQueue],
    robin: RoundRobin,
    faults: FaultTable,
    now: float,
    avoid: str | None,
) -> MessageQueue:
    for _ in range(len(queues)):
        queue = robin.next(queues)
        broker = queue.broker_name
        if broker != avoid and faults.is_available(broker, now):
            return queue
    for _ in range(len(queues)):
        queue = robin.next(queues)
        broker = queue.broker_name
        if broker != avoid and faults.is_reachable(broker):
            return queue
    return robin.next(queues)


def _choose_4x(
    queues: Sequence[MessageQueue], robin: RoundRobin, faults: FaultTable, now: float
) -> MessageQueue:
    index = robin.advance()  # one step, however many queues are checked
    for step in range(len(queues)):
        queue = queues[_position(index + step, len(queues))]
        if faults.is_available(queue.broker_name, now):
            return queue
    broker = faults.least_bad(now)
    own = [queue for queue in queues if queue.broker_name == broker]
    if own:
        # Java takes a turn to get a queue object, and overwrites its broker and id in the shared
        # list itself. We take the same turns, so that the indexes agree, and leave the list alone.
        robin.advance()
        return own[robin.advance() % len(own)]
    if broker is not None:
        faults.forget(broker)  # it serves other topics only
    return robin.next(queues)


def _position(index: int, count: int) -> int:
    """Return 4.x's place in the list for an index that may run over 2³¹−1.

    Java's `Math.abs` leaves the smallest number negative, which then counts as 0; from there on
    the absolute values go down again.
    """
    if index < _OVERFLOW:
        return index % count
    return (2 * _OVERFLOW - index) % count if index > _OVERFLOW else 0
