"""Groups of all kinds of members, a proxy that is killed, clients that read nothing, damaged bytes."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest

from pocketmq import aio, native
from pocketmq.model.kinds import MessageRequestMode
from pocketmq.net import parse_address
from pocketmq.proxy.native_inlet import NativeInlet
from tests.loops import until
from tests.ports import free_port
from tests.proxy.peers import PATIENCE, Peer, code, receive_request, serving
from tests.server_process import POCKETMQ

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MEGABYTE = 1024 * 1024
STUCK = 12


async def test_a_group_of_grpc_pop_and_push_members_handles_each_message_once() -> None:
    async with serving() as served:
        group, address = "mixed", served.cluster.address
        await served.group(group)
        (await served.admin.groups.set_mode("normal", group, MessageRequestMode.POP)).all()
        got: dict[str, list[bytes]] = {"grpc": [], "pop": [], "push": []}

        async def by_grpc() -> None:
            while True:
                for each in await served.peer.received("normal", group, batch_size=2):
                    got["grpc"].append(each.body)
                    handle = each.system_properties.receipt_handle
                    assert code(await served.peer.ack("normal", group, handle)) == "OK"

        async def by_pop() -> None:
            async with aio.PopConsumer(address, group=group, instance_name="pop") as consumer:
                consumer.subscribe("normal")
                while True:
                    for each in await consumer.receive(2, timeout=1):
                        got["pop"].append(each.body)
                        await consumer.ack(each)

        async def handle(message: aio.ReceivedMessage) -> None:
            got["push"].append(message.body)

        async with aio.PushConsumer(
            address, group=group, pop_batch=2, client_rebalance=False, instance_name="push"
        ) as consumer:
            consumer.subscribe("normal", "*", handle)
            polls = [asyncio.create_task(each()) for each in (by_grpc, by_pop)]
            sent: list[bytes] = []
            while not all(got.values()):
                assert len(sent) < 2000, got
                sent.append(b"%d" % len(sent))
                assert code(await served.peer.send("normal", sent[-1])) == "OK"

            def handled() -> Counter[bytes]:
                return Counter(body for bodies in got.values() for body in bodies)

            await until(lambda: len(handled()) == len(sent), "every message", PATIENCE)
            for each in polls:
                each.cancel()
            await asyncio.gather(*polls, return_exceptions=True)
        assert handled() == Counter(sent)


class ProxyProcess:
    """`pocketmq proxy` in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address

    def memory(self) -> float:
        """Megabytes of its own memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("RssAnon:")[2].split()[0]) / 1024


@asynccontextmanager
async def proxy_process(namesrv: str, port: int = 0) -> AsyncIterator[ProxyProcess]:
    words = ["proxy", "-n", namesrv, "--port", str(port), "--log-level", "error"]
    process = await asyncio.create_subprocess_exec(POCKETMQ, *words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith("ready ")
        yield ProxyProcess(process, line.split()[1])
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_a_proxy_that_is_killed_under_load_loses_nothing() -> None:
    async with serving() as served:
        namesrv, accepted, handled = served.cluster.address, set[bytes](), set[bytes]()
        port = free_port()  # nobody else takes it between the two
        async with (
            proxy_process(namesrv, port) as proxy,
            grpc.aio.insecure_channel(proxy.address) as channel,
        ):
            await load(Peer(channel, proxy.address), proxy, accepted, handled)
        async with (
            proxy_process(namesrv, port) as proxy,
            grpc.aio.insecure_channel(proxy.address) as channel,
        ):
            peer = Peer(channel, proxy.address)
            while not accepted <= handled:  # what the first had not delivered comes again
                await take(peer, handled)


async def load(peer: Peer, proxy: ProxyProcess, accepted: set[bytes], handled: set[bytes]) -> None:
    """Send and receive until the proxy is killed, which is soon."""

    async def send(sender: int) -> None:
        for number in range(10_000):
            body = b"%d %d" % (sender, number)
            if code(await peer.send("normal", body)) == "OK":
                accepted.add(body)

    async def receive() -> None:
        while True:
            await take(peer, handled)

    async def kill() -> None:
        # More than those that are on their way to a receiver: something is left for later.
        await until(lambda: len(handled) > 100 and len(accepted - handled) > 30, "lag", PATIENCE)
        proxy.process.kill()

    senders = [send(number) for number in range(4)]  # twice as fast as two receivers, who also ack
    tasks = [asyncio.create_task(each) for each in (*senders, receive(), receive(), kill())]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[-1] is None, outcomes
    assert {type(each) for each in outcomes[:-1]} == {grpc.aio.AioRpcError}, outcomes
    assert not accepted <= handled


async def take(peer: Peer, handled: set[bytes]) -> None:
    """Receive once, and acknowledge."""
    for each in await peer.received("normal", "g", wait=1, batch_size=8, hidden=10):
        handled.add(each.body)  # not after the ack, whose response may be lost with the proxy
        handle = each.system_properties.receipt_handle
        assert code(await peer.ack("normal", "g", handle)) == "OK"


async def test_clients_that_read_nothing_do_not_grow_memory() -> None:
    """The proxy holds what each has asked for, and waits; it serves others as before."""
    async with serving() as served, proxy_process(served.cluster.address) as proxy:
        for _ in range(STUCK):
            assert code(await served.peer.send("normal", bytes(MEGABYTE))) == "OK"
        before = proxy.memory()
        channels = [grpc.aio.insecure_channel(proxy.address) for _ in range(STUCK)]
        calls = []
        for number, channel in enumerate(channels):
            peer = Peer(channel, proxy.address, f"stuck@{number}")
            calls.append(peer.stream("ReceiveMessage", receive_request("normal", "g", wait=2)))
        for call in calls:
            await call.initial_metadata()  # comes with the first response
        await serves_again(proxy.address)
        assert proxy.memory() - before < STUCK * 6
        answers = [each for call in calls async for each in call]
        got = [each.message for each in answers if each.HasField("message")]
        assert sum(len(each.body) for each in got) >= STUCK * MEGABYTE  # it had something to send
        for channel in channels:
            await channel.close()


async def test_damaged_bytes_break_nothing() -> None:
    """What a client really sends, cut and changed at random places, and bytes that are all noise."""
    chance = random.Random(7)
    async with serving() as served, proxy_process(served.cluster.address) as proxy:
        whole = await recorded(proxy.address)
        assert whole.startswith(PREFACE)
        attacks = [damaged(whole, chance) for _ in range(60)]
        attacks += [PREFACE + chance.randbytes(200) for _ in range(10)]
        attacks += [chance.randbytes(1 + 3 * number) for number in range(20)]
        for start in range(0, len(attacks), 10):
            some = attacks[start : start + 10]
            await asyncio.gather(*(attack(proxy.address, each) for each in some))
        await serves_again(proxy.address)


@pytest.mark.skipif(native.core is None, reason="the native core is not built")
async def test_a_path_that_is_not_text_costs_its_own_connection_alone() -> None:
    async with serving() as served:
        assert isinstance(served.proxy._inlet, NativeInlet)
        stream = await served.peer.consume("g", "normal")
        whole = await recorded(served.proxy.address)
        for _ in range(3):
            await attack(served.proxy.address, whole.replace(b"/SendMessage", b"/Send\xffssage"))
        assert code(await served.peer.send("normal", b"x")) == "OK"
        assert not stream.done()
        stream.cancel()


async def serves_again(address: str) -> None:
    async with asyncio.timeout(PATIENCE), grpc.aio.insecure_channel(address) as channel:
        while True:
            try:
                assert code(await Peer(channel, address).send("normal", b"x")) == "OK"
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.05)
            else:
                return


async def recorded(target: str) -> bytes:
    """The bytes of a client that sends a message."""
    seen = bytearray()
    host, port = parse_address(target)

    async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(host, port)

        async def back() -> None:
            while data := await to_reader.read(65536):
                writer.write(data)

        backwards = asyncio.create_task(back())
        while data := await reader.read(65536):
            seen.extend(data)
            to_writer.write(data)
        to_writer.close()
        with suppress(ConnectionError):  # the proxy may have sent more than was read
            await backwards
        writer.close()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(record, "127.0.0.1", 0)
    address = "127.0.0.1:{1}".format(*server.sockets[0].getsockname())
    async with server:
        async with grpc.aio.insecure_channel(address) as channel:
            assert code(await Peer(channel, target).send("normal", b"recorded")) == "OK"
        await ended.wait()
    return bytes(seen)


def damaged(whole: bytes, chance: random.Random) -> bytes:
    made = bytearray(whole)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(PREFACE), len(made) + 1)
        match chance.randrange(4):
            case 0:
                made[place : place + 1] = chance.randbytes(1)
            case 1:
                del made[place : place + chance.randint(1, 20)]
            case 2:
                made[place:place] = chance.randbytes(chance.randint(1, 20))
            case _:
                del made[place:]
    return bytes(made)


async def attack(address: str, data: bytes) -> None:
    """Send bytes, and wait shortly for what the server does about them."""
    reader, writer = await asyncio.open_connection(*parse_address(address))
    writer.write(data)
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(0.1):
            while await reader.read(65536):
                pass
    writer.transport.abort()
