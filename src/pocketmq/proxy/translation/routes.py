"""Routes of topics as gRPC clients see them: every broker behind the proxy's own endpoints.

A route also tells which types of messages its topic accepts; `check_kind` refuses the others.
"""

from collections.abc import Iterator, Sequence

from pocketmq.model import MASTER_ID, MessageQueue, Permission, QueueData, TopicKind, TopicRoute
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

ANY_QUEUE = -1
"""The queue id of an assignment that stands for all queues of a broker."""
_LCG = 2_862_933_555_777_941_757
_MASK = (1 << 64) - 1
_ACCEPTED = {
    TopicKind.NORMAL: [d.MessageType.NORMAL],
    TopicKind.FIFO: [d.MessageType.FIFO],
    TopicKind.DELAY: [d.MessageType.DELAY],
    TopicKind.TRANSACTION: [d.MessageType.TRANSACTION],
    TopicKind.PRIORITY: [d.MessageType.PRIORITY],
    TopicKind.LITE: [d.MessageType.LITE],
    TopicKind.MIXED: [
        d.MessageType.NORMAL,
        d.MessageType.FIFO,
        d.MessageType.DELAY,
        d.MessageType.TRANSACTION,
    ],
}


def accepted_types(kind: TopicKind) -> list["d.MessageType"]:
    """Return the message types that a topic accepts."""
    return _ACCEPTED.get(kind, [d.MessageType.MESSAGE_TYPE_UNSPECIFIED])


def check_kind(expected: TopicKind, actual: TopicKind) -> None:
    """Raise `CallRefused` if a topic does not accept messages of a type."""
    if expected is TopicKind.MIXED or actual is expected:
        return
    raise CallRefused(
        d.Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"TopicMessageType validate failed, the expected type is {expected.name}, "
        f"but actual type is {actual.name}",
    )


def check_endpoints(endpoints: d.Endpoints) -> d.Endpoints:
    """Return how the client reaches this proxy; raises `CallRefused` if it does not say so."""
    if not endpoints.addresses:
        raise CallRefused(d.Code.ILLEGAL_ACCESS_POINT, "endpoints cannot be empty")
    return endpoints


def message_queues(
    route: TopicRoute, topic: d.Resource, endpoints: d.Endpoints, kind: TopicKind
) -> list[d.MessageQueue]:
    """Return the queues of a topic at each of its broker processes."""
    types = accepted_types(kind)
    processes = {data.broker_name: sorted(data.broker_addrs) for data in route.broker_datas}
    return [
        d.MessageQueue(
            topic=topic,
            id=number,
            permission=permission,
            broker=d.Broker(name=data.broker_name, id=broker_id, endpoints=endpoints),
            accept_message_types=types,
        )
        for data in route.queue_datas
        for broker_id in processes.get(data.broker_name, ())
        for number, permission in enumerate(_permissions(data))
    ]


def assignments(
    route: TopicRoute, topic: d.Resource, endpoints: d.Endpoints, *, fifo: bool
) -> list[d.Assignment]:
    """Return what each member of a group receives from: all brokers.

    POP shares messages and not queues. Raises `CallRefused` if no queue is readable.
    """
    masters = {each.broker_name for each in route.broker_datas if MASTER_ID in each.broker_addrs}
    found = [
        d.Assignment(
            message_queue=d.MessageQueue(
                topic=topic,
                id=number,
                permission=_permission(data.perm),
                broker=d.Broker(name=data.broker_name, id=MASTER_ID, endpoints=endpoints),
            )
        )
        for data in route.queue_datas
        if data.perm & Permission.READ and data.read_queue_nums > 0
        if data.broker_name in masters
        for number in (range(data.read_queue_nums) if fifo else (ANY_QUEUE,))
    ]
    if not found:
        raise CallRefused(d.Code.FORBIDDEN, "no readable queue")
    return found


def queue_of_group(queues: Sequence[MessageQueue], hashed: int) -> MessageQueue:
    """Return the queue of a message group, by the hash of its name.

    The same as in Apache's proxy, so that both may stand before one topic (Guava:
    Hashing.consistentHash).
    """
    state, candidate = hashed & _MASK, 0
    while True:
        state = (_LCG * state + 1) & _MASK
        fraction = ((state >> 33) + 1) / float(1 << 31)
        following = int((candidate + 1) / fraction)
        if not 0 <= following < len(queues):
            return queues[candidate]
        candidate = following


def _permission(bits: int) -> "d.Permission":
    readable, writable = bits & Permission.READ, bits & Permission.WRITE
    if readable and writable:
        return d.Permission.READ_WRITE
    if readable:
        return d.Permission.READ
    return d.Permission.WRITE if writable else d.Permission.NONE


def _permissions(data: QueueData) -> Iterator["d.Permission"]:
    """Yield the permission of each queue: those only to read, only to write, then both."""
    read, write = data.read_queue_nums, data.write_queue_nums
    permission = _permission(data.perm)
    if permission == d.Permission.READ_WRITE:
        both = min(read, write)
        yield from [d.Permission.READ] * (read - both)
        yield from [d.Permission.WRITE] * (write - both)
        yield from [permission] * both
    elif permission == d.Permission.NONE:
        yield from [permission] * max(1, read, write)
    else:
        yield from [permission] * (read if permission == d.Permission.READ else write)
