"""Memory for all connections of a server: who waits, who is cut off, and who notices nothing."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pocketmq.net import Connection, Limits
from pocketmq.protocol import Command
from tests.loops import leap, leaping, until
from tests.net.certificates import make_certificates
from tests.net.peers import Raw, Recorder, ask, echo, is_open, serving

KIB, MIB = 1024, 1024 * 1024


def begun(size: int, sent: int) -> bytes:
    """Return the first bytes of a frame that declares more."""
    return ((size - 4).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(sent))[:sent]


def held_frame(connection: Connection) -> int:
    """Return the bytes read and not handed over, as the budget sees them."""
    memory = connection._memory
    assert memory is not None
    return memory.read_bytes


@leaping
async def test_a_frame_that_stalls_is_cut_off_and_a_slow_one_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A byte a minute kept a frame for ever; 64 KiB in 30 s are enough to go on."""
    owner = Recorder(echo)
    async with serving(owner) as (_, address), Raw(address) as stalled, Raw(address) as slow:
        await stalled.send(begun(16 * MIB, 100 * KIB))
        await slow.send(begun(16 * MIB, 100 * KIB))
        await until(lambda: len(owner.opened) == 2, "both")
        first, second = owner.opened
        await until(lambda: first.received and second.received, "their bytes")
        for _ in range(12):
            await leap(9.0)
            before = second.received
            await slow.send(bytes(32 * KIB))
            await until(lambda before=before: second.received > before, "more")  # type: ignore[misc]
            if is_open(first):
                await stalled.send(b"x")
        assert first.closed
        assert not second.closed
        cause = str(owner.closed[0][1])
        assert "bytes of a frame in 3" in cause
        told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        assert len(told) == 1
        assert told[0].startswith(f'client disconnected: address={first.remote_address} reason="')


@asynccontextmanager
async def strangers(owner: Recorder, address: str) -> AsyncIterator[None]:
    """Two peers that hold three quarters of 8 MiB with large frames, and send nothing more."""
    async with Raw(address) as one, Raw(address) as two:
        for each in (one, two):
            await each.send(begun(7 * MIB, 3 * MIB + 64 * KIB))
        await until(lambda: sum(held_frame(each) for each in owner.opened) > 6 * MIB, "pressure")
        yield


async def test_frames_wait_for_memory_and_those_that_lack_least_come_first() -> None:
    """Two strangers hold three quarters of the memory; a smaller frame passes them by."""
    owner = Recorder(echo)
    limits = Limits(memory=8 * MIB)
    async with (
        serving(owner, limits) as (_, address),
        strangers(owner, address),
        Raw(address) as honest,
    ):
        await honest.send(ask(bytes(MIB)).encode() + ask(b"small").encode())
        bodies = [len(each.body) for each in await honest.commands(2)]
        assert bodies == [MIB, 5]
        assert not owner.closed
        held = sum(held_frame(each) for each in owner.opened)
        assert 6 * MIB < held <= 6 * MIB + 128 * KIB  # pressure pauses them, with part still unread


async def test_nobody_is_slow_because_the_server_itself_had_no_time() -> None:
    """A window has a second; a process that gets no processor for longer must not cut off all."""
    owner = Recorder(echo)
    async with (
        serving(owner, Limits(memory=8 * MIB)) as (_, address),
        strangers(owner, address),
        Raw(address) as honest,
    ):
        frame = ask(bytes(100 * KIB)).encode()
        await honest.send(frame[: 90 * KIB])
        await until(lambda: len(owner.opened) == 3, "the third")
        memory = owner.opened[2]._memory
        assert memory is not None
        await until(lambda: memory.read_bytes == 90 * KIB and memory.granted, "most of the frame")
        budget = memory.budget
        due = budget._due
        time.sleep(1.5)  # noqa: ASYNC251 - the server's loop stands still
        await until(lambda: budget._due > due, "a check")
        await honest.send(frame[90 * KIB :])
        assert [len(each.body) for each in await honest.commands(1)] == [100 * KIB]


async def test_who_is_slow_under_pressure_is_cut_off_the_largest_first() -> None:
    owner = Recorder(echo)
    limits = Limits(memory=4 * MIB)
    async with (
        serving(owner, limits) as (_, address),
        Raw(address) as small,
        Raw(address) as large,
    ):
        await small.send(begun(60 * KIB, 50 * KIB))
        await until(lambda: owner.opened and held_frame(owner.opened[0]) == 50 * KIB, "the small")
        await large.send(begun(3 * MIB + 513 * KIB, 3 * MIB + 512 * KIB))
        await until(lambda: owner.closed, "the end of one")
        assert len(owner.closed) == 1
        assert owner.closed[0][0] is owner.opened[1]
        assert f"it holds {3 * MIB + 512 * KIB} bytes" in str(owner.causes[0])
        assert f"of {4 * MIB}" in str(owner.causes[0])


async def test_peers_that_have_not_authenticated_share_a_quarter() -> None:
    """They are under pressure among themselves; who is trusted is not."""
    owner = Recorder(echo)
    async with serving(owner, Limits(memory=16 * MIB)) as (server, address):
        server.distrust()
        async with Raw(address) as known, Raw(address) as stranger:
            await known.send(ask(b"hello").encode())
            await known.commands(1)
            owner.opened[0].trust()
            await known.send(begun(12 * MIB, 5 * MIB))
            await stranger.send(begun(12 * MIB, 3 * MIB + 512 * KIB))
            await until(lambda: owner.closed, "the end of the stranger")
            assert [each for each, _ in owner.closed] == [owner.opened[1]]
            assert f"of {4 * MIB}" in str(owner.causes[0])
            assert held_frame(owner.opened[0]) == 5 * MIB


async def test_frames_within_tls_count(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    owner = Recorder(echo)
    async with serving(owner, Limits(memory=4 * MIB), made.serving()) as (_, address):
        host, _, port = address.rpartition(":")
        context = made.asking(check_hostname=False).context()
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        try:
            writer.write(begun(4 * MIB, 3 * MIB + 512 * KIB))
            await until(lambda: owner.closed, "the end")
            assert f"it holds {3 * MIB + 512 * KIB} bytes" in str(owner.causes[0])
        finally:
            writer.transport.abort()


class Careful(Recorder):
    """Makes an answer of a MiB for each request, unless it should not."""

    def __init__(self) -> None:
        super().__init__(self.give)
        self.largest = 0

    def give(self, connection: Connection, requests: list[Command]) -> None:
        for position, request in enumerate(requests):
            if connection.crowded:
                connection.put_back(requests[position:])
                return
            connection.write(request.reply(0, body=bytes(MIB)).encode())
            self.largest = max(self.largest, connection.unsent)


async def test_requests_that_are_put_back_are_answered_later_and_in_order() -> None:
    owner = Careful()
    limits = Limits(memory=8 * MIB)
    async with serving(owner, limits) as (_, address), Raw(address) as slow:
        await slow.send(b"".join(ask(opaque=each).encode() for each in range(60)))
        await until(lambda: owner.opened and owner.opened[0].waiting, "a request that waits")
        assert owner.largest <= limits.write_high + MIB + 1000
        answers = await slow.commands(60)
        assert [each.opaque for each in answers] == list(range(60))
        assert owner.largest <= limits.write_high + MIB + 1000


async def test_fields_of_requests_that_are_put_back_count() -> None:
    def put_back(connection: Connection, requests: list[Command]) -> None:
        if not connection.waiting:
            connection.put_back(requests)

    owner = Recorder(put_back)
    async with serving(owner, Limits(memory=8 * MIB)) as (_, address), Raw(address) as peer:
        request = Command.request(11, 1, {"key": "x" * MIB})
        await peer.send(request.encode())
        await until(lambda: owner.opened and owner.opened[0].waiting, "a request that waits")
        assert held_frame(owner.opened[0]) > MIB
