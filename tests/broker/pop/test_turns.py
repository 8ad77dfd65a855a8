"""Whose turn it is among those who wait, and what becomes of those who leave."""

from pocketmq.protocol.codes import RequestCode as Code
from tests.broker.pop.counter import bodies, create, got, pop_fields, send, serving
from tests.broker.running import client, running
from tests.loops import until

T = "orders"


async def test_whoever_has_waited_longest_is_served_first_whatever_queue_it_pops() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await create(peer, T)
        posted = []
        for queue in (-1, 0, -1, 0):
            posted.append(
                peer.post(Code.POP_MESSAGE, pop_fields(T, pollTime=10_000, queueId=queue))
            )
            await until(lambda: len(serving(broker).waiting) == len(posted), "the pop to be held")
        for number, body in zip(posted, "abcd", strict=True):
            await send(other, T, body)
            assert bodies(got(await peer.answer(number), T)) == [body]


async def test_several_messages_at_once_are_given_to_those_who_wait_in_turn() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await create(peer, T)
        posted = []
        for queue in (-1, -1, 0, 0):
            fields = pop_fields(T, pollTime=10_000, queueId=queue, maxMsgNums=1)
            posted.append(peer.post(Code.POP_MESSAGE, fields))
            await until(lambda: len(serving(broker).waiting) == len(posted), "the pop to be held")
        await send(other, T, *"abcd")
        answers = [bodies(got(await peer.answer(number), T)) for number in posted]
        assert answers == [["a"], ["b"], ["c"], ["d"]]


async def test_pops_of_a_client_that_leaves_its_group_are_answered() -> None:
    """Those of its other groups go on, and messages go to who is left."""
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await create(peer, T)
        leaving = peer.post(Code.POP_MESSAGE, pop_fields(T, pollTime=10_000))
        staying = peer.post(Code.POP_MESSAGE, pop_fields(T, "H", pollTime=10_000))
        await until(lambda: len(serving(broker).waiting) == 2, "the pops to be held")
        theirs = other.post(Code.POP_MESSAGE, pop_fields(T, pollTime=10_000))
        await until(lambda: len(serving(broker).waiting) == 3, "the other's pop to be held")
        left = peer.post(Code.UNREGISTER_CLIENT, {"clientID": "c", "consumerGroup": "G"})
        assert (await peer.answer(leaving)).code == 210
        assert (await peer.answer(left)).code == 0
        async with client(address) as sender:
            await send(sender, T, "a")
        assert bodies(got(await other.answer(theirs), T)) == ["a"]
        assert bodies(got(await peer.answer(staying), T)) == ["a"]
