"""Back pressure: slow readers, fast senders, and how much either can make this side hold."""

import asyncio
import socket
import tracemalloc

import pytest

from pocketmq.errors import ConnectFailed, ConnectionLost, RequestNotSent, RequestTimedOut
from pocketmq.net import Connection, Limits
from pocketmq.net.address import socket_name
from pocketmq.net.shared import LANE_READ, next_read
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.command_reader import cut_commands
from pocketmq.protocol.frame import FRAME_LIMIT, FrameReader
from tests.loops import leap, leaping, until
from tests.net.peers import Raw, Recorder, ask, dialling, echo, is_open, serving

KIB, MIB = 1024, 1024 * 1024


class Generous(Recorder):
    """Answers every request with a body of its own of `size` bytes, at once or a turn later."""

    def __init__(self, size: int, *, later: bool = False) -> None:
        super().__init__(self.give)
        self.size = size
        self.later = later
        self.largest = 0

    def give(self, connection: Connection, requests: list[Command]) -> None:
        if self.later:
            asyncio.get_running_loop().call_soon(self.write, connection, requests)
        else:
            self.write(connection, requests)

    def write(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            connection.write(request.reply(0, body=bytes(self.size)).encode())
        self.largest = max(self.largest, connection.unsent)


@pytest.mark.parametrize("later", [False, True], ids=["answered at once", "answered a turn later"])
async def test_a_client_that_asks_for_much_and_never_reads_costs_little_memory(
    later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """20 000 pipelined requests for 256 KiB each would be 5 GB."""
    owner = Generous(256 * KIB, later=later)
    requests = ask().encode() * 20_000
    tracemalloc.start()
    try:
        async with (
            serving(owner, Limits(write_stall=0.4)) as (_, address),
            Raw(address) as greedy,
            Raw(address) as other,
        ):
            sender = asyncio.create_task(greedy.send(requests))
            await until(lambda: any(end.clogged for end in owner.opened), "the clog")
            size, owner.size = owner.size, 10
            await other.send(ask(b"unharmed").encode())
            assert len(await other.commands(1)) == 1
            owner.size = size
            await until(lambda: owner.closed, "the end")
            await asyncio.gather(sender, return_exceptions=True)
            assert owner.largest < 20 * MIB
            assert tracemalloc.get_traced_memory()[1] < 80 * MIB
            assert len(owner.requests) < 200
            reason = "the peer read nothing of its unsent responses for 0.4 s"
            assert reason in str(owner.causes[0])
            peer = owner.closed[0][0].remote_address
            told = f'client disconnected: address={peer} reason="{reason}"'
            assert told in [record.getMessage() for record in caplog.records]
    finally:
        tracemalloc.stop()


@leaping
async def test_a_peer_is_cut_off_only_after_the_whole_stall_time_without_progress() -> None:
    owner = Generous(64 * MIB)
    async with serving(owner) as (_, address), Raw(address, receive_buffer=64 * KIB) as peer:
        await peer.send(ask().encode())
        await until(lambda: owner.opened and owner.opened[0].clogged, "the clog")
        connection = owner.opened[0]
        for _ in range(8):  # slow, but alive: takes a little each time
            for _ in range(3):
                await leap(14.9)
            before = connection.unsent
            while connection.unsent == before:
                await peer.read(64 * KIB)
                await asyncio.sleep(0)
            await leap(0.1)
            assert is_open(connection)
        for _ in range(3):
            await leap(15)
        assert is_open(connection)
        await leap(15)
        await leap(15)
        assert not is_open(connection)
    await until(lambda: owner.closed, "the end")
    assert "read nothing" in str(owner.causes[0])


async def test_a_slow_reader_gets_everything_in_the_end() -> None:
    owner = Generous(300 * KIB)
    limits = Limits(write_high=512 * KIB, write_low=128 * KIB)
    async with (
        serving(owner, limits) as (_, address),
        Raw(address, receive_buffer=64 * KIB) as peer,
    ):
        sent = [ask(opaque=number) for number in range(100)]
        sender = asyncio.create_task(peer.send(b"".join(each.encode() for each in sent)))
        answers = await peer.commands(100)
        await sender
        assert [answer.opaque for answer in answers] == list(range(100))
        assert {len(answer.body) for answer in answers} == {300 * KIB}
        assert owner.largest < 12 * MIB


async def test_very_many_requests_of_one_read_come_in_bounded_batches_and_in_order() -> None:
    owner = Recorder(echo)
    limits = Limits(batch=16, slice=60)  # a batch that the machine delays counts as a quick one
    async with serving(owner, limits) as (_, address), Raw(address) as peer:
        await peer.send(b"".join(ask(opaque=number).encode() for number in range(1000)))
        answers = await peer.commands(1000)
        assert [answer.opaque for answer in answers] == list(range(1000))
        assert [request.opaque for request in owner.requests] == list(range(1000))
        sizes = [len(batch) for batch in owner.batches]
        assert max(sizes) == 16
        assert sizes[:4] == [2, 4, 8, 16]


async def test_one_flooding_client_does_not_keep_the_others_waiting() -> None:
    """Between two batches of the flood, others have their turn."""
    owner = Recorder()
    async with serving(owner) as (_, address), Raw(address) as flooder, Raw(address) as other:
        await until(lambda: len(owner.opened) == 2, "the connections")
        flood = asyncio.create_task(flooder.send(ask(b"flood").encode() * 20_000))
        await until(lambda: owner.requests, "the flood")
        await other.send(ask(b"other").encode())
        await until(lambda: len(owner.requests) >= 20_001, "everything")
        await flood
        position = [request.body for request in owner.requests].index(b"other")
        assert position < 18_000


class Iterations:
    """A lane that answers all, and notes in which event-loop iteration each read was made."""

    starts: tuple[bytes, ...] = (b"{",)

    def __init__(self) -> None:
        self.now = 0
        self.reads: list[int] = []

    def take(self, connection: Connection, data: bytes, start: int) -> int:
        self.reads.append(self.now)
        asyncio.get_running_loop().call_soon(self.advance)
        requests, end, _ = cut_commands(data, start, FRAME_LIMIT)
        echo(connection, requests)
        return end

    def advance(self) -> None:
        self.now += 1

    def end(self, _: Connection) -> None:
        pass


async def test_a_flooding_client_is_read_once_in_an_iteration_of_the_event_loop() -> None:
    """Other connections would wait for all its reads, of which uvloop makes 32 by itself."""
    owner, lane = Recorder(echo), Iterations()
    async with serving(owner) as (_, address), Raw(address) as peer:
        await until(lambda: owner.opened, "the connection")
        owner.opened[0].lane = lane
        sender = asyncio.create_task(peer.send(ask(bytes(100)).encode() * 10_000))
        await peer.commands(10_000)
        await sender
    assert len(lane.reads) > 20
    assert sorted(set(lane.reads)) == lane.reads


async def test_two_sides_that_both_send_much_do_not_block_each_other() -> None:
    """A client goes on reading while its own requests wait: otherwise both would stop for ever."""
    limits = Limits(write_high=64 * KIB, write_low=16 * KIB, write_stall=20)
    body = bytes(MIB)
    async with (
        serving(Recorder(echo), limits) as (_, address),
        dialling(Recorder(), limits) as dialer,
    ):
        connection = await dialer.connect(address)
        answers = await asyncio.gather(*[connection.request(ask(body), 30) for _ in range(40)])
        assert [len(answer.body) for answer in answers] == [MIB] * 40
        assert connection.unsent == 0


async def test_a_server_that_asks_much_and_never_reads_cannot_fill_the_client() -> None:
    client = Generous(256 * KIB)
    limits = Limits(write_high=MIB, write_low=256 * KIB, write_stall=0.3)
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with dialling(client, limits) as dialer:
            await dialer.connect(socket_name(listener.getsockname()))
            peer, _ = listener.accept()
            with peer:
                peer.setblocking(False)
                with pytest.raises((ConnectionResetError, BrokenPipeError)):
                    await loop.sock_sendall(peer, ask().encode() * 200_000)
                await until(lambda: client.closed, "the end")
    assert client.largest < 8 * MIB
    assert len(client.requests) < 100


async def test_held_answers_beyond_the_hard_limit_cut_the_client_off() -> None:
    owner = Recorder()
    limits = Limits(write_high=MIB, write_low=MIB // 2, write_max=24 * MIB)
    async with serving(owner, limits) as (_, address), Raw(address):
        await until(lambda: owner.opened, "the connection")
        connection = owner.opened[0]
        written = 0
        while not connection.closed and written < 100:
            connection.write(bytes(MIB))
            connection.flush()
            written += 1
        assert 20 < written < 40
        await until(lambda: owner.closed, "the end")
        assert "more than 25165824 bytes wait" in str(owner.causes[0])


async def test_drain_waits_for_room_and_no_longer() -> None:
    owner = Recorder()
    limits = Limits(write_high=MIB, write_low=MIB // 2)
    async with serving(owner) as (_, address), dialling(Recorder(), limits) as dialer:
        connection = await dialer.connect(address)
        await connection.drain()
        for _ in range(200):
            connection.send_oneway(ask(bytes(100 * KIB)))
            await connection.drain()
            assert connection.unsent <= MIB + 101 * KIB
        assert connection.send_oneway(ask(b"last"))
        connection.close()
        with pytest.raises(ConnectionLost):
            await connection.drain()
        await until(lambda: len(owner.requests) == 201, "all of them")


async def test_a_drain_ends_with_the_connection() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address), Raw(address):
        await until(lambda: owner.opened, "the connection")
        owner.opened[0].write(bytes(20 * MIB))
        waiting = [asyncio.create_task(owner.opened[0].drain()) for _ in range(2)]
        await until(lambda: len(owner.opened[0]._outbox._drains) == 2, "the waiters")
        waiting[0].cancel()
        owner.opened[0].abort()
        with pytest.raises(ConnectionLost):
            await waiting[1]
        assert waiting[0].cancelled()


@leaping
async def test_requests_the_socket_had_no_room_for_are_dropped_when_their_time_is_over() -> None:
    """Only those that were handed over, even in part, may have been carried out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = socket_name(listener.getsockname())
        async with dialling(Recorder()) as dialer:
            connection = await dialer.connect(address, 5.0)
            peer, _ = listener.accept()  # reads nothing for now
            with peer:
                asked = [
                    asyncio.create_task(connection.request(ask(bytes(MIB)), 3.0)) for _ in range(40)
                ]
                await until(lambda: connection.clogged, "the clog")
                await leap(3.1)
                done = await asyncio.gather(*asked, return_exceptions=True)
                assert all(isinstance(error, RequestTimedOut) for error in done)
                unsent = [error for error in done if isinstance(error, RequestNotSent)]
                assert len(unsent) > 20
                assert not any(error.outcome_unknown for error in unsent)
                later = asyncio.create_task(connection.request(ask(b"later"), 3.0))
                await asyncio.sleep(0)
                peer.setblocking(False)
                reader, found = FrameReader(), list[Command]()
                while not found or found[-1].body != b"later":
                    data = await asyncio.get_running_loop().sock_recv(peer, MIB)
                    found += [read_command(frame) for frame in reader.feed(data)]
                assert len(found) - 1 == len(done) - len(unsent)
                await asyncio.get_running_loop().sock_sendall(peer, found[-1].reply(0).encode())
                assert (await later).code == 0


async def test_requests_that_wait_for_room_end_with_the_connection_as_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = socket_name(listener.getsockname())
        async with dialling(Recorder()) as dialer:
            connection = await dialer.connect(address, 5.0)
            peer, _ = listener.accept()
            asked = [
                asyncio.create_task(connection.request(ask(bytes(MIB)), 30.0)) for _ in range(40)
            ]
            await until(lambda: connection.clogged, "the clog")
            peer.close()
            done = await asyncio.gather(*asked, return_exceptions=True)
            unsent = [error for error in done if isinstance(error, ConnectFailed)]
            assert len(unsent) > 20
            assert all(isinstance(error, ConnectionLost | ConnectFailed) for error in done)
            assert isinstance(done[0], ConnectionLost)


async def test_requests_that_wait_for_room_arrive_in_order_once_there_is_some() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address, 5.0)
        bodies = [bytes([n]) * (MIB // 4) for n in range(100)]
        asked = [asyncio.create_task(connection.request(ask(body), 30.0)) for body in bodies]
        answers = await asyncio.gather(*asked)
        assert [answer.body for answer in answers] == bodies
        assert [request.body for request in owner.requests] == bodies


async def test_a_lane_gets_a_large_frame_in_one_read_after_another_one() -> None:
    owner, lane = Recorder(echo), Iterations()
    async with serving(owner) as (_, address), Raw(address) as peer:
        await until(lambda: owner.opened, "the connection")
        connection = owner.opened[0]
        connection.lane = lane
        assert len(connection.get_buffer(-1)) == LANE_READ
        await peer.send(ask(bytes(50_000)).encode())
        await peer.commands(1)
        assert len(connection.get_buffer(-1)) == 65_536
        connection.get_buffer(-1)[:] = (ask(bytes(100)).encode() * 400)[:65_536]
        connection.buffer_updated(65_536)  # small ones are read a little at a time
        assert len(connection.get_buffer(-1)) == LANE_READ


@pytest.mark.parametrize(
    ("size", "read"),
    [(100, 32_768), (32_767, 32_768), (32_768, 49_152), (60_000, 65_536), (1 << 31, 131_072)],
)
def test_the_next_read_of_a_lane_fits_a_frame_as_large_as_the_last(size: int, read: int) -> None:
    assert next_read((size - 4).to_bytes(4, "big") + bytes(9)) == read
