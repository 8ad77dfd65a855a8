"""One connection, both ends real sockets: requests, answers, batches, broken peers, the end."""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial

import pytest

from pocketmq import errors
from pocketmq.net import Connection, Limits
from pocketmq.protocol import Command
from pocketmq.protocol.command import RESPONSE_FLAG, OpaqueCounter
from pocketmq.testing.proxy import FaultProxy, Way
from tests.loops import leap, leaping, until
from tests.net.peers import Raw, Recorder, ask, dialling, echo, is_open, serving
from tests.own_time import own_time


async def test_a_request_gets_its_answer() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        answer = await dialer.request(address, Command.request(310, 77, {"a": "b"}, b"hello"), 5)
        assert (answer.code, answer.body, answer.is_response) == (0, b"hello", True)
        [request] = owner.requests
        assert (request.code, request.ext, request.body) == (310, {"a": "b"}, b"hello")


async def test_answers_find_their_waiters_in_any_order() -> None:
    held: list[Command] = []

    def backwards(connection: Connection, requests: list[Command]) -> None:
        held.extend(requests)
        if len(held) == 20:
            echo(connection, held[::-1])

    async with serving(Recorder(backwards)) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        bodies = [b"%d" % number for number in range(20)]
        answers = await asyncio.gather(*[connection.request(ask(body), 5) for body in bodies])
        assert [answer.body for answer in answers] == bodies
        assert len({answer.opaque for answer in answers}) == 20


async def test_all_requests_of_one_read_are_one_batch() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), Raw(address) as peer:
        await peer.send(b"".join(ask(b"%d" % number).encode() for number in range(8)))
        answers = await peer.commands(8)
        assert [answer.body for answer in answers] == [b"%d" % number for number in range(8)]
        assert [len(batch) for batch in owner.batches] == [8]


async def test_a_frame_arriving_byte_by_byte_is_one_request() -> None:
    owner = Recorder(echo)
    async with (
        serving(owner) as (_, address),
        FaultProxy(address) as proxy,
        dialling(Recorder()) as dialer,
    ):
        proxy.trickle(1)
        answer = await dialer.request(proxy.address, ask(b"slowly"), 10)
        assert answer.body == b"slowly"
        assert len(owner.requests) == 1


async def test_large_frames_pass_both_ways() -> None:
    body = bytes(range(256)) * (12 * 1024 * 1024 // 256)
    async with serving(Recorder(echo)) as (_, address), dialling(Recorder()) as dialer:
        answer = await dialer.request(address, ask(body), 10)
        assert answer.body == body


async def test_the_server_may_ask_the_client_on_the_same_connection() -> None:
    server_side = Recorder()
    async with serving(server_side) as (_, address), dialling(Recorder(echo)) as dialer:
        await dialer.connect(address)
        await until(lambda: server_side.opened, "the connection")
        answer = await server_side.opened[0].request(ask(b"how are you", code=307), 5)
        assert answer.body == b"how are you"


async def test_a_oneway_request_is_marked_so_and_not_waited_for() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        assert connection.send_oneway(ask(b"bye"))
        assert (await connection.request(ask(b"still here"), 5)).body == b"still here"
        assert [(request.body, request.is_oneway) for request in owner.requests] == [
            (b"bye", True),
            (b"still here", False),
        ]
        connection.close()
        assert not connection.send_oneway(ask())


async def test_both_ends_know_each_other_by_address() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        await until(lambda: owner.opened, "the connection")
        assert connection.remote_address == address == owner.opened[0].local_address
        assert connection.local_address == owner.opened[0].remote_address
        assert (connection.accepted, owner.opened[0].accepted) == (False, True)


async def test_small_writes_do_not_wait_for_acknowledgements() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        ends = [await dialer.connect(address)]
        await until(lambda: owner.opened, "the connection")
        for end in (*ends, *owner.opened):
            assert end._transport is not None
            raw = end._transport.get_extra_info("socket")
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


# Deadlines and waiters


async def test_a_request_without_answer_times_out_and_says_so() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Recorder()) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        started, own = loop.time(), own_time()
        with pytest.raises(errors.RequestTimedOut) as caught:
            await connection.request(ask(code=11), 0.1)
        assert loop.time() - started > 0.09
        assert own_time() - own < 2
        assert caught.value.message == f"{address}: no response to PULL_MESSAGE within 0.1 s"
        assert len(connection._requests) == 0
        assert not connection.closed


async def test_a_late_answer_is_dropped_and_the_connection_goes_on() -> None:
    late: list[tuple[Connection, Command]] = []
    owner = Recorder(lambda connection, requests: late.append((connection, requests[0])))
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        with pytest.raises(errors.RequestTimedOut):
            await connection.request(ask(), 0.05)
        await until(lambda: late, "the request to arrive")  # it may need longer than it has
        owner.answer = echo
        echo(late[0][0], [late[0][1]])
        assert (await connection.request(ask(b"next"), 5)).body == b"next"


async def test_one_deadline_passing_leaves_the_other_requests_waiting() -> None:
    held: list[tuple[Connection, Command]] = []
    owner = Recorder(lambda connection, requests: held.extend((connection, r) for r in requests))
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        patient = asyncio.create_task(connection.request(ask(b"patient"), 10))
        hasty = asyncio.create_task(connection.request(ask(b"hasty"), 0.05))
        with pytest.raises(errors.RequestTimedOut):
            await hasty
        await until(lambda: held, "the requests to arrive")  # they may need longer than that
        echo(held[0][0], [held[0][1]])
        assert (await patient).body == b"patient"


async def test_a_cancelled_request_leaves_no_waiter_behind() -> None:
    async with serving(Recorder()) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        task = asyncio.create_task(connection.request(ask(), 10))
        await until(lambda: len(connection._requests) == 1, "the waiter")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(connection._requests) == 0


async def test_a_response_nobody_waits_for_is_ignored() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), Raw(address) as peer:
        stray = Command(0, 4711, flag=RESPONSE_FLAG)
        await peer.send(stray.encode() + ask(b"go on").encode())
        [answer] = await peer.commands(1)
        assert answer.body == b"go on"
        assert [request.body for request in owner.requests] == [b"go on"]


async def test_opaque_numbers_still_in_use_are_skipped() -> None:
    held: list[Command] = []
    owner = Recorder(lambda _, requests: held.extend(requests))
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        first = asyncio.create_task(connection.request(ask(b"first"), 10))
        await until(lambda: held, "the request")
        again = OpaqueCounter(held[0].opaque)  # as after 2**32 further requests
        connection.requests.take = again.take
        second = asyncio.create_task(connection.request(ask(b"second"), 10))
        await until(lambda: len(held) == 2, "the second request")
        assert held[1].opaque == held[0].opaque + 1
        echo(owner.opened[0], held)
        assert [(await first).body, (await second).body] == [b"first", b"second"]


async def test_losing_the_connection_tells_every_waiter() -> None:
    owner = Recorder()
    async with (
        serving(owner) as (_, address),
        FaultProxy(address) as proxy,
        dialling(Recorder()) as dialer,
    ):
        connection = await dialer.connect(proxy.address)
        tasks = [asyncio.create_task(connection.request(ask(), 10)) for _ in range(5)]
        await until(lambda: len(owner.requests) == 5, "the requests")
        proxy.cut(reset=True)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [errors.ConnectionLost] * 5
        assert len({id(outcome) for outcome in outcomes}) == 5
        with pytest.raises(errors.ConnectionLost, match="the connection is closed"):
            await connection.request(ask(), 1)


# Broken peers


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"\x7f\xff\xff\xff\x00\x00\x00\x02", errors.FrameTooLarge),
        (b"\x00\x00\x00\x06\x00\x00\x00\x09{}", errors.FrameMalformed),
        (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", errors.FrameTooLarge),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02{{", errors.HeaderMalformed),
    ],
    ids=["too large", "contradiction", "another protocol", "header"],
)
async def test_malformed_bytes_end_the_connection_after_what_came_before(
    data: bytes, cause: type[Exception]
) -> None:
    owner = Recorder(echo)
    async with serving(owner) as (server, address), Raw(address) as peer, Raw(address) as other:
        await peer.send(ask(b"sound").encode() + data)
        assert [answer.body for answer in await peer.commands(1)] == [b"sound"]
        assert await peer.read_to_end() == b""
        await until(lambda: owner.closed, "the end")
        assert [type(each) for each in owner.causes] == [cause]
        await other.send(ask(b"unharmed").encode())
        assert [answer.body for answer in await other.commands(1)] == [b"unharmed"]
        assert len(server.connections) == 1


async def test_a_corrupted_answer_ends_the_client_connection_with_its_cause() -> None:
    client = Recorder()
    async with (
        serving(Recorder(echo)) as (_, address),
        FaultProxy(address) as proxy,
        dialling(client) as dialer,
    ):
        connection = await dialer.connect(proxy.address)
        proxy.corrupt(0, Way.TO_CLIENT)
        with pytest.raises(errors.ConnectionLost, match="malformed frame: negative length"):
            await connection.request(ask(b"x"), 10)
        await until(lambda: client.closed, "the end")
        assert [type(cause) for cause in client.causes] == [errors.FrameMalformed]


async def test_a_peer_leaving_in_mid_frame_is_told_apart() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address):
        async with Raw(address) as peer:
            await peer.send(ask(b"whole").encode()[:-1])
            await until(lambda: owner.opened and owner.opened[0]._reader.buffered, "the bytes")
        await until(lambda: owner.closed, "the end")
        async with Raw(address):
            await until(lambda: len(owner.opened) == 2, "the connection")
        await until(lambda: len(owner.closed) == 2, "the end")
        reasons = [
            cause.reason for cause in owner.causes if isinstance(cause, errors.ConnectionLost)
        ]
        assert reasons == ["closed by the peer in the middle of a frame", "closed by the peer"]
        assert owner.requests == []


async def test_a_reset_is_reported_as_one() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address):
        peer = Raw(address)
        await until(lambda: owner.opened, "the connection")
        peer.reset()
        await until(lambda: owner.closed, "the end")
        [cause] = owner.causes
        assert isinstance(cause, errors.ConnectionLost)
        assert cause.reason == "the peer reset the connection"
        assert isinstance(cause.__cause__, ConnectionResetError)


# An owner that fails


class Failing(Recorder):
    def __init__(self, where: str) -> None:
        super().__init__(echo)
        self.where = where

    def connection_opened(self, connection: Connection) -> None:
        super().connection_opened(connection)
        if self.where == "opened" and len(self.opened) == 1:
            raise ValueError("the owner's own fault")

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        super().requests_received(connection, requests)
        if self.where == "requests" and requests[0].body == b"poison":
            raise ValueError("the owner's own fault")

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        super().connection_closed(connection, cause)
        if self.where == "closed":
            raise ValueError("the owner's own fault")


async def test_one_read_is_one_batch_up_to_a_limit_and_what_failed_has_no_rest() -> None:
    owner = Failing("requests")
    unhurried = Limits(slice=60)  # a batch that the machine delays is not followed by a smaller one
    async with serving(owner, unhurried) as (_, address), Raw(address) as peer:
        await peer.send(ask(b"many").encode() * 64)
        await peer.commands(64)
        owner.batches.clear()
        await peer.send(ask(b"many").encode() * 40)
        await peer.commands(40)
        assert [len(batch) for batch in owner.batches] == [40]
        owner.batches.clear()
        await peer.send(ask(b"many").encode() * 100)
        await peer.commands(100)
        assert [len(batch) for batch in owner.batches] == [64, 36]
        owner.batches.clear()
        await peer.send(ask(b"poison").encode() + ask(b"many").encode() * 99)
        await until(lambda: owner.closed, "the end")
        assert [len(batch) for batch in owner.batches] == [64]


async def test_after_a_read_that_took_too_long_the_next_one_is_cut_up() -> None:
    owner = Failing("never")
    async with serving(owner, Limits(slice=0.0)) as (_, address), Raw(address) as peer:
        await peer.send(ask(b"long").encode() * 8)
        await peer.commands(8)
        await peer.send(ask(b"long").encode() * 8)
        await peer.commands(8)
        assert [len(batch) for batch in owner.batches] == [8, 4, 2, 1, 1]


@pytest.mark.parametrize("where", ["opened", "requests", "closed"])
async def test_a_failing_owner_costs_one_connection_and_is_logged(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    owner = Failing(where)
    with caplog.at_level(logging.ERROR, "pocketmq.net"):
        async with serving(owner) as (server, address):
            async with Raw(address) as peer:
                if where == "closed":
                    await until(lambda: owner.opened, "the connection")
                else:
                    await peer.send(ask(b"poison").encode())
                    with pytest.raises((AssertionError, ConnectionError)):
                        await peer.commands(2)
            await until(lambda: owner.closed, "the end")
            assert len(server.connections) == 0
            async with Raw(address) as other:
                await other.send(ask(b"unharmed").encode())
                assert [answer.body for answer in await other.commands(1)] == [b"unharmed"]
    first = caplog.records[0]
    assert first.exc_info is not None
    assert repr(first.exc_info[1]) == repr(ValueError("the owner's own fault"))
    if where != "closed":
        assert isinstance(owner.causes[0], ValueError)


# Quiet connections


def both_closed(*owners: Recorder) -> Callable[[], bool]:
    return lambda: all(owner.closed for owner in owners)


async def test_a_quiet_connection_is_closed_from_either_end() -> None:
    for server_idle, client_idle in ((0.1, 120.0), (120.0, 0.1)):
        owner, client = Recorder(), Recorder()
        async with (
            serving(owner, Limits(idle=server_idle)) as (_, address),
            dialling(client, Limits(idle=client_idle)) as dialer,
        ):
            await dialer.connect(address)
            await until(both_closed(owner, client), "the end")
            reasons = [str(cause).partition(": ")[2] for cause in owner.causes + client.causes]
            assert sorted(reasons) == ["closed by the peer", "idle for 0.1 s"]


@leaping
async def test_traffic_in_either_direction_keeps_a_connection() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address), Raw(address) as peer:
        await until(lambda: owner.opened, "the connection")
        for _ in range(3):
            await leap(119)
            owner.opened[0].send_oneway(ask())
            owner.opened[0].flush()
        for count in range(1, 4):
            await leap(119)
            await peer.send(ask().encode())
            await until(partial(owner.asked, count), "the request")
        await leap(119)
        assert is_open(owner.opened[0])
        await leap(1.1)
        assert not is_open(owner.opened[0])
        assert (await peer.read_to_end()).count(b"PYTHON") == 3
    await until(lambda: owner.closed, "the end")
    assert [str(cause).partition(": ")[2] for cause in owner.causes] == ["idle for 120 s"]


# The end


async def test_closing_lets_queued_answers_leave_even_if_more_requests_arrive() -> None:
    """A socket closed with unread bytes in it is reset, which may cost answers on their way."""
    body = b"y" * (3 * 1024 * 1024)
    owner = Recorder()

    def answer_and_close(connection: Connection, requests: list[Command]) -> None:
        connection.write(requests[0].reply(0, body=body).encode())
        connection.close()

    owner.answer = answer_and_close
    async with serving(owner, Limits(linger=60)) as (_, address), Raw(address) as peer:
        await peer.send(ask().encode())
        await until(lambda: owner.opened and owner.opened[0].closed, "the close")
        await peer.send(ask().encode() * 1000)
        [answer] = await peer.commands(1)
        assert answer.body == body
        assert await peer.read() == b""
        peer.socket.close()
        await until(lambda: owner.closed, "the end")
        assert owner.causes == [None]
        assert len(owner.requests) == 1


async def test_a_closed_connection_does_not_wait_for_a_deaf_peer_for_ever() -> None:
    owner = Recorder()
    async with serving(owner, Limits(linger=0.1)) as (_, address), Raw(address):
        await until(lambda: owner.opened, "the connection")
        owner.opened[0].write(b"z" * (20 * 1024 * 1024))
        owner.opened[0].close(ValueError("enough"))
        await until(lambda: owner.closed, "the end")
        assert [str(cause) for cause in owner.causes] == ["enough"]


async def test_abort_after_close_ends_at_once() -> None:
    owner = Recorder()
    async with serving(owner, Limits(linger=60)) as (_, address), Raw(address):
        await until(lambda: owner.opened, "the connection")
        owner.opened[0].write(b"z" * (20 * 1024 * 1024))
        owner.opened[0].close()
        owner.opened[0].abort()
        await until(lambda: owner.closed, "the end")


async def test_writing_to_a_closed_connection_does_nothing() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address), Raw(address) as peer:
        await until(lambda: owner.opened, "the connection")
        connection = owner.opened[0]
        connection.write(b"before")
        connection.close()
        connection.write(b"after")
        connection.flush()
        connection.close()
        assert connection.unsent == 0
        assert await peer.read_to_end() == b"before"
