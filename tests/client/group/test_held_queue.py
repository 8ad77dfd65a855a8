"""The states of a queue, and how a rebalance takes over one that is read already."""

from pocketmq.balance.consumer.instructions import AddQueue, DropQueue, RemoveQueue
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.model import MessageQueue
from tests.client.group.groups import cluster, queues_of
from tests.client.pull.readers import reader

QUEUE = MessageQueue("orders", "broker-a", 0)


def test_a_queue_that_is_dropped_starts_nothing_and_its_results_are_ignored() -> None:
    held = HeldQueue(QUEUE, "orders", 0, 0.0)
    assert (held.state, held.may_start, held.dropped) == (HoldState.OWNED, True, False)
    held.enter(HoldState.READ)
    assert (held.may_start, held.dropped) == (True, False)
    held.enter(HoldState.DROPPED)
    assert (held.may_start, held.dropped) == (False, True)
    assert held.owned().dropped
    assert "dropped orders@broker-a:0" in repr(held)


async def test_a_queue_that_is_read_becomes_owned_without_losing_its_place() -> None:
    """As in Java, a queue whose offset was not found in a rebalance is read all the same."""
    async with (
        cluster(1, 1) as running,
        reader(running.address).assign(queues_of(1, 1)) as consumer,
    ):
        holdings = consumer._life.running().holdings
        table = consumer._life.running().parts.queues.pulled
        (queue,) = queues_of(1, 1)
        read = table[queue]
        assert read.state is HoldState.READ
        assert holdings.owned() == (), "no rebalance took it"
        holdings.perform((AddQueue(queue),))
        assert table[queue] is read
        assert [owned.queue for owned in holdings.owned()] == [queue]
        holdings.perform((DropQueue(queue), RemoveQueue(queue)))
        assert (table, holdings.owned(), read.dropped) == ({}, (), True)
        assert read.task is not None
        assert read.task.cancelling()
        holdings.perform((AddQueue(queue),))
        assert table[queue] is not read, "a new stay has a new object"
