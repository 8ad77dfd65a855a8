"""Pops on a running broker, over raw frames: taken, acknowledged, brought back, given up."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pocketmq.protocol import RecordView
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.records import Record
from tests.broker.pop import counter
from tests.broker.running import LoopClock, client, pull_fields, records, running, send_fields
from tests.loops import leap, leaping, until

T = "orders"
RETRY = "%RETRY%G_orders"


async def test_a_message_is_given_to_one_member_and_committed_once_acknowledged() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a", "b", "c", "d")
        first = await counter.pop(peer, T, maxMsgNums=2)
        second = await counter.pop(peer, T, maxMsgNums=2)
        assert (counter.bodies(first), counter.bodies(second)) == (["a", "b"], ["c", "d"])
        assert await counter.pop(peer, T) == []
        assert await counter.committed(peer, T) == 0
        await counter.ack(peer, T, *second)
        assert await counter.committed(peer, T) == 0
        await counter.ack(peer, T, first[0])
        assert await counter.committed(peer, T) == 1
        await counter.ack(peer, T, first[1])
        assert await counter.committed(peer, T) == 4


async def test_every_group_gets_every_message() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T, 4)
        for queue in range(4):
            await counter.send(peer, T, f"{queue}", queue=queue)
        for group in ("G", "H"):
            assert sorted(counter.bodies(await counter.pop(peer, T, group))) == ["0", "1", "2", "3"]
            assert await counter.pop(peer, T, group) == []


async def test_many_acknowledgements_come_in_one_request() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abcdefgh")
        messages = await counter.pop(peer, T)
        body = counter.batch_body(T, messages[0], messages[1], messages[7])
        assert (await peer.ask(Code.BATCH_ACK_MESSAGE, {}, body)).code == 0
        assert await counter.committed(peer, T) == 2
        body = counter.batch_body(T, *messages[2:7])
        assert (await peer.ask(Code.BATCH_ACK_MESSAGE, {}, body)).code == 0
        assert await counter.committed(peer, T) == 8
        assert (await peer.ask(Code.BATCH_ACK_MESSAGE, {}, b'{"acks":[]}')).code == 208


@leaping
async def test_what_is_not_acknowledged_comes_back_through_the_retry_topic() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a", "b")
        first, second = await counter.pop(peer, T, invisibleTime=3000)
        await counter.ack(peer, T, first)
        await leap(2.5)
        assert await counter.pop(peer, T) == []
        await leap(1)
        (back,) = await counter.pop(peer, T, invisibleTime=3000)
        assert (back.body, back.topic, back.tries) == (b"b", T, 1)
        assert str(back.handle.mark.real_topic(T, "G")) == RETRY
        assert back.properties["1ST_POP_TIME"] == str(second.handle.pop_time_ms)
        assert back.properties["ORIGIN_GROUP"] == "G"
        assert await counter.committed(peer, T) == 2
        assert await counter.committed(peer, RETRY) == 0
        await counter.ack(peer, T, second)  # its time was over: that of the retry counts
        await leap(4)
        (again,) = await counter.pop(peer, T)
        assert (again.body, again.tries) == (b"b", 2)
        assert again.properties["1ST_POP_TIME"] == str(second.handle.pop_time_ms)
        await counter.ack(peer, T, again)
        assert await counter.committed(peer, RETRY) == 2
        await leap(60)
        assert await counter.pop(peer, T) == []


@leaping
async def test_retry_topics_of_the_second_kind_have_a_plus_in_their_name() -> None:
    async with (
        running(enable_retry_topic_v2=True) as (broker, address),
        client(address) as peer,
    ):
        await counter.create(peer, T)
        await counter.send(peer, T, "a")
        await counter.pop(peer, T, invisibleTime=1000)
        await leap(2)
        await until(lambda: "%RETRY%G+orders" in broker.state.topics, "the retry topic")
        (back,) = await counter.pop(peer, T)
        assert (back.topic, back.tries, back.handle.mark.value) == (T, 1, "2")
        await counter.ack(peer, T, back)
        assert await counter.committed(peer, "%RETRY%G+orders") == 1


@leaping
async def test_after_its_last_try_a_message_goes_to_the_dead_letters() -> None:
    async with running() as (broker, address), client(address) as peer:
        await counter.create(peer, T)
        group = {"groupName": "G", "retryMaxTimes": 2, "retryQueueNums": 1, "consumeEnable": True}
        assert (await peer.ask(200, {}, json.dumps(group).encode())).code == 0
        await counter.send(peer, T, "a")
        tries = []
        for _ in range(3):
            (message,) = await counter.pop(peer, T, invisibleTime=1000)
            tries.append(message.tries)
            await leap(2)
        assert tries == [0, 1, 2]
        assert await counter.pop(peer, T) == []
        dead = broker.state.store.queue("%DLQ%G", 0)
        assert dead is not None
        (record,) = broker.state.store.read(dead, 0, 2, 1 << 20).pieces
        properties = decode_properties(RecordView(bytes(record), 0).property_bytes)
        assert properties["RETRY_TOPIC"] == T
        assert dead.next_offset == 1


@leaping
async def test_a_message_hidden_for_longer_has_a_new_handle_that_alone_counts() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a", "b")
        first, _ = await counter.pop(peer, T, invisibleTime=3000)
        await leap(1)
        longer = await counter.hide(peer, T, first, 60_000)
        assert longer.handle.pop_time_ms > first.handle.pop_time_ms
        assert longer.handle.invisible_time_ms == 60_000
        await counter.ack(peer, T, first)  # in vain
        assert await counter.committed(peer, T) == 0
        await leap(3)
        assert counter.bodies(await counter.pop(peer, T)) == ["b"]
        await counter.ack(peer, T, longer)
        assert await counter.committed(peer, T) == 2


@leaping
async def test_a_message_given_back_comes_at_once() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a")
        (message,) = await counter.pop(peer, T, invisibleTime=300_000)
        await counter.hide(peer, T, message, 0)
        waiting = peer.post(Code.POP_MESSAGE, counter.pop_fields(T, pollTime=10_000))
        (back,) = counter.got(await peer.answer(waiting), T)
        assert (back.body, back.tries) == (b"a", 1)


async def test_a_pop_waits_for_messages_and_several_share_them() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await counter.create(peer, T, 2)
        pops = [
            peer.post(Code.POP_MESSAGE, counter.pop_fields(T, pollTime=10_000)) for _ in range(2)
        ]
        special = peer.post(Code.POP_MESSAGE, counter.pop_fields(T, pollTime=10_000, queueId=1))
        await until(lambda: len(counter.serving(broker).waiting) == 3, "pops")
        info = {"consumerGroup": "G", "topic": T, "queueId": "-1"}
        assert (await other.ask(Code.POLLING_INFO, info)).ext["pollingNum"] == "2"
        await counter.send(other, T, "a", queue=0)
        assert counter.bodies(counter.got(await peer.answer(pops[0]), T)) == ["a"]
        await counter.send(other, T, "b", queue=0)
        assert counter.bodies(counter.got(await peer.answer(pops[1]), T)) == ["b"]
        await counter.send(other, T, "c", queue=1)
        assert counter.bodies(counter.got(await peer.answer(special), T)) == ["c"]
        assert len(counter.serving(broker).waiting) == 0
        queues = [broker.state.store.queue(T, n) for n in range(2)]
        assert [queue.waiting for queue in queues if queue is not None] == [0, 0]


@leaping
async def test_a_pop_that_waited_in_vain_is_told_so() -> None:
    async with running() as (broker, address), client(address) as peer:
        await counter.create(peer, T)
        waiting = peer.post(Code.POP_MESSAGE, counter.pop_fields(T, pollTime=5000))
        await until(lambda: len(counter.serving(broker).waiting), "the pop")
        await leap(5)
        answer = await peer.answer(waiting)
        assert (answer.code, answer.remark) == (210, "NO_MESSAGE_IN_QUEUE")
        assert answer.ext["restNum"] == "0"


@leaping
async def test_who_wants_to_be_told_is_told_when_something_comes() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await counter.create(peer, T)
        fields = {"consumerGroup": "G", "topic": T, "queueId": "-1", "pollTime": "9000"}
        fields |= {"bornTime": "0", "order": "false"}
        in_vain = await peer.ask(Code.NOTIFICATION, fields | {"pollTime": "0"})
        assert (in_vain.code, in_vain.ext["hasMsg"]) == (0, "false")
        waiting = peer.post(Code.NOTIFICATION, fields)
        await until(lambda: len(counter.serving(broker).waiting), "it to wait")
        await counter.send(other, T, "a")
        assert (await peer.answer(waiting)).ext["hasMsg"] == "true"
        assert (await peer.ask(Code.NOTIFICATION, fields)).ext["hasMsg"] == "true"
        await counter.pop(peer, T, invisibleTime=1000)
        waiting = peer.post(Code.NOTIFICATION, fields)
        await until(lambda: len(counter.serving(broker).waiting), "it to wait")
        await leap(2)
        assert (await peer.answer(waiting)).ext["hasMsg"] == "true"  # it came back


@leaping
async def test_filters_choose_and_what_nobody_wants_is_passed_over() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        for n in range(6):
            await counter.send(peer, T, f"{n}", tag="even" if n % 2 == 0 else "odd")
        messages = await counter.pop(peer, T, exp="odd", invisibleTime=1000)
        assert counter.bodies(messages) == ["1", "3", "5"]
        assert await counter.committed(peer, T) == 1
        await counter.ack(peer, T, *messages[1:])
        await leap(2)
        (back,) = await counter.pop(peer, T, exp="odd")
        assert back.body == b"1"
        assert await counter.committed(peer, T) == 6
        sql = {"expType": "SQL92", "exp": "TAGS = 'even'"}
        assert counter.bodies(await counter.pop(peer, T, "S", **sql)) == ["0", "2", "4"]
        bad = await peer.ask(Code.POP_MESSAGE, counter.pop_fields(T, expType="SQL92", exp="(("))
        assert bad.code == 23


async def test_a_long_stretch_nobody_wants_does_not_stop_a_pop_that_waits() -> None:
    async with running() as (broker, address), client(address) as peer:
        await counter.create(peer, T)
        store = broker.state.store
        queue = store.make_queue(T, 0)
        other = Record(topic=T.encode(), body=b"x", property_bytes=b"TAGS\1other\2")
        store.append(queue, [other] * 30_000, [1] * 30_000, 1)
        await counter.send(peer, T, "last", tag="odd")
        waiting = peer.post(Code.POP_MESSAGE, counter.pop_fields(T, exp="odd", pollTime=10_000))
        assert counter.bodies(counter.got(await peer.answer(waiting), T)) == ["last"]


async def test_odd_requests_get_javas_refusals() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T, 2)
        await counter.send(peer, T, "a")

        async def code(what: int, fields: dict[str, str]) -> int:
            return (await peer.ask(what, fields)).code

        assert await code(Code.POP_MESSAGE, counter.pop_fields("none")) == 17
        assert await code(Code.POP_MESSAGE, counter.pop_fields(T, maxMsgNums=33)) == 29
        assert await code(Code.POP_MESSAGE, counter.pop_fields(T, queueId=2)) == 29
        assert await code(Code.POP_MESSAGE, counter.pop_fields(T, bornTime=1)) == 210
        assert await code(Code.POP_MESSAGE, counter.pop_fields(T, "no good!")) == 26
        (message,) = await counter.pop(peer, T)
        fields = counter.place(message, T)
        assert await code(Code.ACK_MESSAGE, fields | {"topic": "none"}) == 17
        assert await code(Code.ACK_MESSAGE, fields | {"queueId": "2"}) == 13
        assert await code(Code.ACK_MESSAGE, fields | {"offset": "7"}) == 208
        assert await code(Code.ACK_MESSAGE, fields | {"extraInfo": "no handle"}) == 1
        hidden = fields | {"invisibleTime": "1000"}
        assert await code(Code.CHANGE_MESSAGE_INVISIBLETIME, hidden | {"offset": "1"}) == 208
        assert await code(Code.CHANGE_MESSAGE_INVISIBLETIME, hidden | {"queueId": "9"}) == 13
        assert await code(310, send_fields("rmq_sys_REVIVE_LOG_DefaultCluster")) == 16
        assert await counter.committed(peer, T) == 0


async def test_too_many_waiting_pops_are_turned_away() -> None:
    async with running(pop_polling_size=1) as (_, address), client(address) as peer:
        await counter.create(peer, T)
        posted = [
            peer.post(Code.POP_MESSAGE, counter.pop_fields(T, pollTime=10_000)) for _ in range(3)
        ]
        assert (await peer.answer(posted[2])).code == 209


async def test_a_peek_shows_and_takes_nothing() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a", "b")
        fields = {"consumerGroup": "G", "topic": T, "queueId": "-1", "maxMsgNums": "8"}
        for _ in range(2):
            answer = await peer.ask(Code.PEEK_MESSAGE, fields)
            assert (answer.code, answer.remark, answer.ext["restNum"]) == (0, "FOUND", "2")
        messages = await counter.pop(peer, T)
        assert counter.bodies(messages) == ["a", "b"]
        assert (await peer.ask(Code.PEEK_MESSAGE, fields)).code == 19


@leaping
async def test_members_that_pull_go_on_where_those_that_pop_have_come() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abcdef")
        messages = await counter.pop(peer, T, maxMsgNums=4, invisibleTime=1000)
        await counter.ack(peer, T, *messages[:2])
        offset = await counter.committed(peer, T)
        assert offset == 2
        pulled = await peer.ask(11, pull_fields(T, offset, consumerGroup="G"))
        assert [record.stored_body for record in records(pulled)] == [b"c", b"d", b"e", b"f"]
        commit = {"consumerGroup": "G", "topic": T, "queueId": "0", "commitOffset": "6"}
        assert (await peer.ask(15, commit)).code == 0
        await leap(2)  # what was out comes back, and takes nothing back
        assert sorted(counter.bodies(await counter.pop(peer, T))) == ["c", "d"]
        assert await counter.committed(peer, T) == 6


@leaping
async def test_a_reset_sends_a_group_back_and_its_handles_count_no_more() -> None:
    async with running() as (broker, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abcd")
        messages = await counter.pop(peer, T)
        await counter.ack(peer, T, *messages[:3])
        broker.state.offsets.reset("G", T, 0, 1)
        again = await counter.pop(peer, T, invisibleTime=1000)
        assert counter.bodies(again) == ["b", "c", "d"]
        await counter.ack(peer, T, messages[3])
        assert await counter.committed(peer, T) == 1
        await counter.ack(peer, T, *again)
        assert await counter.committed(peer, T) == 4


@leaping
async def test_a_deleted_topic_takes_what_was_out_with_it(tmp_path: Path) -> None:
    clock = LoopClock()
    async with running(tmp_path, clock) as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abcd")
        await counter.pop(peer, T, maxMsgNums=3, invisibleTime=1000)
        assert (await peer.ask(215, {"topic": T})).code == 0
        await counter.create(peer, T)
        await counter.send(peer, T, "new")
        await leap(3)
        assert counter.bodies(await counter.pop(peer, T)) == ["new"]


@leaping
async def test_a_group_with_too_many_messages_out_gets_no_more() -> None:
    settings: dict[str, Any] = {"pop_inflight_message_threshold": 3}
    async with running(**settings) as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, *"abcd")
        messages = await counter.pop(peer, T, maxMsgNums=3)
        answer = await peer.ask(Code.POP_MESSAGE, counter.pop_fields(T, pollTime=10_000))
        assert (answer.code, answer.ext["restNum"]) == (209, "1")
        await counter.ack(peer, T, messages[0])
        assert counter.bodies(await counter.pop(peer, T)) == ["d"]


async def test_a_pop_of_nothing_gets_one_and_keeps_nobody_busy() -> None:
    async with running() as (_, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a", "b")
        assert counter.bodies(await counter.pop(peer, T, maxMsgNums=0)) == ["a"]
        assert counter.bodies(await counter.pop(peer, T, maxMsgNums=-5)) == ["b"]


async def test_one_message_is_told_to_one_client_that_wants_to_be_told() -> None:
    """All its questions are answered: it may have stopped to look at the first."""
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await counter.create(peer, T)
        fields = {"consumerGroup": "G", "topic": T, "queueId": "-1", "pollTime": "9000"}
        fields["bornTime"] = "0"
        pops = counter.serving(broker)
        posted = [peer.post(Code.NOTIFICATION, fields)]
        await until(lambda: len(pops.waiting) == 1, "the first to wait")
        another = other.post(Code.NOTIFICATION, fields)
        await until(lambda: len(pops.waiting) == 2, "the second to wait")
        posted += [peer.post(Code.NOTIFICATION, fields)]
        await until(lambda: len(pops.waiting) == 3, "all to wait")
        async with client(address) as sender:
            await counter.send(sender, T, "a")
            for number in posted:
                assert (await peer.answer(number)).ext["hasMsg"] == "true"
            assert len(pops.waiting) == 1
            await counter.send(sender, T, "b")
            assert (await other.answer(another)).ext["hasMsg"] == "true"


@leaping
async def test_what_cannot_be_redelivered_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rolled-back message in the log is refused as a copy; all others come back in time."""
    async with running(clock=LoopClock()) as (broker, address), client(address) as peer:
        await counter.create(peer, T)
        store = broker.state.store
        odd = Record(topic=T.encode(), body=b"odd", property_bytes=b"", sys_flag=12)
        store.append(store.make_queue(T, 0), [odd], [0], 1)
        await counter.send(peer, T, "behind")
        assert counter.bodies(await counter.pop(peer, T, invisibleTime=2000)) == ["odd", "behind"]
        assert counter.bodies(await counter.pop(peer, T, "H", invisibleTime=2000)) == [
            "odd",
            "behind",
        ]
        await leap(2.5)
        for group in ("G", "H"):
            assert counter.bodies(await counter.pop(peer, T, group)) == ["behind"]
            assert await counter.committed(peer, T, group) == 0  # the odd one is still in flight
    refused = "redelivery refused: group=G topic=orders queue=0 offset=0: "
    assert len([each for each in caplog.messages if each.startswith(refused)]) == 1


@leaping
async def test_an_unexpected_failure_of_one_pop_leaves_the_others_their_deadlines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Settings of one group are damaged: its messages come back once they are repaired."""
    async with running(clock=LoopClock()) as (broker, address), client(address) as peer:
        await counter.create(peer, T)
        await counter.send(peer, T, "a")
        for group in ("G", "H"):
            assert counter.bodies(await counter.pop(peer, T, group, invisibleTime=2000)) == ["a"]
        groups = broker.state.groups.entries
        sound = groups["G"]
        groups["G"] = msgspec.structs.replace(sound, retry_max_times="damaged")
        await leap(2.5)
        assert counter.bodies(await counter.pop(peer, T, "H")) == ["a"]
        assert await counter.pop(peer, T, "G") == []
        groups["G"] = sound
        await leap(1.5)
        assert counter.bodies(await counter.pop(peer, T, "G")) == ["a"]
    failed = [each for each in caplog.records if each.message.startswith("redelivery failed: ")]
    assert failed
    assert failed[0].message == "redelivery failed: group=G topic=orders queue=0; retrying in 1 s"
    assert failed[0].exc_info


async def test_a_damaged_message_is_skipped_and_the_others_keep_their_handles() -> None:
    size = 64 << 10  # of a file: the messages lie in two, side by side in the first
    async with (
        running(mapped_file_size_commit_log=size, max_message_size=size // 4) as (broker, address),
        client(address) as peer,
    ):
        await counter.create(peer, T)
        await counter.send(peer, T, *[letter * 12_000 for letter in "abcdefg"])
        log, queue = broker.state.store.log, broker.state.store.queue(T, 0)
        assert queue is not None
        position = queue.position(5)
        assert position is not None
        segment = log.segments.at(position)
        assert segment is not None
        assert log.segments.at(queue.position(4) or 0) is not segment
        segment.file.view[position - segment.start + 88] ^= 1  # its body
        log.recent = log.written  # so that records are checked again
        messages = await counter.pop(peer, T)
        assert [body[0] for body in counter.bodies(messages)] == [*"abcdeg"]
        assert [message.handle.queue_offset for message in messages] == [0, 1, 2, 3, 4, 6]
        await counter.ack(peer, T, *messages)
        assert await counter.committed(peer, T) == 7
