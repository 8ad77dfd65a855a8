"""How many calls one connection and one client may have open; others are served meanwhile."""

import asyncio
import struct

import grpc
import grpc.aio

from pocketmq.net import parse_address
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.wire.schema import SERVICE
from tests.loops import until
from tests.proxy.peers import PATIENCE, Peer, code, receive_request, serving

MOST = 8
LIMITS = ProxyLimits(min_long_polling=0.1, streams_per_connection=MOST, telemetry_per_client=2)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS = 1, 3, 4
ACK, END_HEADERS = 1, 4
REFUSED_STREAM = 7


async def test_further_calls_of_a_connection_wait_and_those_of_others_do_not() -> None:
    async with serving(limits=LIMITS) as served:
        await served.peer.receive("normal", "g")
        request = receive_request("normal", "g", wait=15, batch_size=1)
        got: list[bytes] = []

        async def poll() -> None:
            async for each in served.peer.stream("ReceiveMessage", request):
                if each.HasField("message"):
                    got.append(each.message.body)  # noqa: PERF401 - one by one, as they come

        polls = [asyncio.create_task(poll()) for _ in range(MOST)]
        await served.polled("normal", "g")
        waiting = asyncio.create_task(served.peer.send("normal", b"waits"))
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(served.proxy.address, options=options) as channel:
            other = Peer(channel, served.proxy.address, "other@1")
            assert code(await other.send("fifo", b"x", message_group="m", message_type=2)) == "OK"
            assert not waiting.done()
            assert code(await other.send("normal", b"first")) == "OK"  # which ends a poll
        assert code(await waiting) == "OK"
        await until(lambda: {b"first", b"waits"} <= set(got), "both messages", PATIENCE)
        for each in polls:
            each.cancel()
        await asyncio.wait(polls)


async def test_calls_that_do_not_wait_are_refused() -> None:
    """A client of its own making, which opens streams beyond what the server announced."""
    async with serving(limits=LIMITS) as served:
        assert code(await served.peer.send("normal", b"x")) == "OK"
        reader, writer = await asyncio.open_connection(*parse_address(served.proxy.address))
        writer.write(PREFACE + frame(SETTINGS))
        async with asyncio.timeout(PATIENCE):
            while (await next_frame(reader))[:2] != (SETTINGS, 0):
                pass
        writer.write(frame(SETTINGS, ACK))
        streams = [2 * number + 1 for number in range(3 * MOST)]
        for stream in streams:
            writer.write(frame(HEADERS, END_HEADERS, stream, telemetry_headers(f"raw@{stream}")))
        refused: set[int] = set()
        async with asyncio.timeout(PATIENCE):
            while len(refused) < len(streams) - MOST:
                kind, _, stream, payload = await next_frame(reader)
                if kind == RST_STREAM and int.from_bytes(payload, "big") == REFUSED_STREAM:
                    refused.add(stream)
        assert refused == set(streams[MOST:])
        assert code(await served.peer.send("normal", b"x")) == "OK"
        writer.close()


async def test_telemetry_streams_of_one_client_are_limited() -> None:
    async with serving(limits=LIMITS) as served:
        first = await served.peer.consume("g", "normal")
        second = await served.peer.consume("g", "normal")
        third = served.peer.telemetry()
        assert await third.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2 Telemetry streams" in await third.details()
        other = Peer(served.peer.channel, served.proxy.address, "other@1")
        (await other.consume("g", "normal")).cancel()
        first.cancel()
        await until_opened(served.peer)
        second.cancel()


async def until_opened(peer: Peer) -> None:
    """Open a Telemetry stream, once the proxy has seen the end of another."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                (await peer.consume("g", "normal")).cancel()
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.01)
            else:
                return


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def telemetry_headers(client_id: str) -> bytes:
    """The headers of a Telemetry call, none of them compressed."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/{SERVICE}/Telemetry",
        ":authority": "a",
        "te": "trailers",
        "content-type": "application/grpc",
        "x-mq-client-id": client_id,
    }
    made = b""
    for name, value in fields.items():
        for word in (name, value):
            assert len(word) < 127
        made += b"\0" + b"".join(bytes([len(word)]) + word.encode() for word in (name, value))
    return made


async def next_frame(reader: asyncio.StreamReader) -> tuple[int, int, int, bytes]:
    head = await reader.readexactly(9)
    kind, flags, stream = struct.unpack(">BBI", head[3:])
    return kind, flags, stream, await reader.readexactly(int.from_bytes(head[:3], "big"))
