"""Listening, limits on connections, and the joint end."""

import asyncio
import logging
import resource
import socket
from contextlib import ExitStack, suppress

import pytest

from pocketmq.errors import ConnectionLost, ListenFailed
from pocketmq.net import Address, Connection, Limits, Server, reachable_host
from pocketmq.protocol import Command
from tests.loops import leap, leaping, until
from tests.net.peers import LOOPBACK, Raw, Recorder, ask, dialling, echo, serving
from tests.own_time import own_time

MIB = 1024 * 1024


async def test_port_0_takes_a_free_port_and_tells_it() -> None:
    server = Server(Recorder())
    address = await server.listen(LOOPBACK, 0)
    assert address.host == LOOPBACK
    assert address.port > 0
    await server.close()


async def test_a_server_listens_on_several_addresses() -> None:
    owner = Recorder(echo)
    server = Server(owner)
    addresses = [await server.listen(LOOPBACK, 0) for _ in range(2)]
    assert addresses[0].port != addresses[1].port
    async with dialling(Recorder()) as dialer:
        for address in addresses:
            assert (await dialer.request(str(address), ask(b"x"), 5)).body == b"x"
    await server.close()


async def test_ipv6_works_like_ipv4() -> None:
    owner = Recorder(echo)
    server = Server(owner)
    address = await server.listen("::1", 0)
    assert str(address) == f"[::1]:{address.port}"
    async with dialling(Recorder()) as dialer:
        assert (await dialer.request(str(address), ask(b"six"), 5)).body == b"six"
    assert owner.opened[0].local_address == str(address)
    assert owner.opened[0].remote_address.startswith("[::1]:")
    await server.close()


async def test_a_name_with_several_addresses_listens_on_one_port() -> None:
    server = Server(Recorder(echo))
    address = await server.listen("", 0)  # every interface, IPv4 and IPv6
    async with dialling(Recorder()) as dialer:
        for host in (LOOPBACK, "::1"):
            answer = await dialer.request(str(Address(host, address.port)), ask(b"x"), 5)
            assert answer.body == b"x"
    await server.close()


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("192.0.2.1", "this machine has no such address"),
        ("a" * 64 + ".example", "the host name is invalid"),
    ],
)
async def test_an_address_that_is_not_ours_is_refused(host: str, reason: str) -> None:
    with pytest.raises(ListenFailed, match=reason):
        await Server(Recorder()).listen(host, 0)


async def test_a_port_in_use_is_refused() -> None:
    async with serving(Recorder()) as (_, address):
        port = int(address.rpartition(":")[2])
        with pytest.raises(ListenFailed) as caught:
            await Server(Recorder()).listen(LOOPBACK, port)
        assert str(caught.value) == f"{address}: the port is in use"
        assert not caught.value.retryable


async def test_connections_over_the_limit_are_closed_at_once_and_harm_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    owner = Recorder(echo)
    with caplog.at_level(logging.WARNING, "pocketmq.net"):
        async with serving(owner, Limits(connections=2)) as (server, address):
            async with Raw(address) as first, Raw(address) as second:
                await until(lambda: len(server.connections) == 2, "both connections")
                for _ in range(20):
                    async with Raw(address) as excess:
                        assert await excess.read_to_end() == b""
                for peer in (first, second):
                    await peer.send(ask(b"unharmed").encode())
                    assert (await peer.commands(1))[0].body == b"unharmed"
            await until(lambda: len(server.connections) == 0, "the end of both")
            async with Raw(address) as third:
                await third.send(ask(b"welcome").encode())
                assert (await third.commands(1))[0].body == b"welcome"
        assert len(owner.opened) == len(owner.closed) == 3
    assert [record.message for record in caplog.records] == [
        "connection limit reached: 2 open; closing further connections"
    ]


@leaping
async def test_a_process_out_of_files_accepts_again_once_it_has_some(
    caplog: pytest.LogCaptureFixture,
) -> None:
    owner = Recorder(echo)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serving(owner) as (server, address):
        with ExitStack() as stack:
            clients = [stack.enter_context(socket.socket()) for _ in range(3)]
            highest = max(client.fileno() for client in clients)
            host, _, port = address.rpartition(":")
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
            try:
                for client in clients:
                    client.connect((host, int(port)))
                await until(lambda: caplog.records, "the warning")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert caplog.messages == [
                f"{address}: accepting failed: this process has too many open files; retrying in 1 s"
            ]
            await leap(1.1)
            await until(lambda: len(server.connections) == 3, "all three")


async def test_a_server_that_stops_listening_keeps_its_connections() -> None:
    async with serving(Recorder(echo)) as (server, address), Raw(address) as peer:
        await until(lambda: len(server.connections) == 1, "the connection")
        server.stop_listening()
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):
            Raw(address)
        await peer.send(ask(b"still").encode())
        assert (await peer.commands(1))[0].body == b"still"


async def test_closing_lets_queued_answers_leave_within_the_grace() -> None:
    owner = Recorder()
    body = b"a" * (10 * MIB)

    def answer(connection: Connection, requests: list[Command]) -> None:
        connection.write(requests[0].reply(0, body=body).encode())

    owner.answer = answer
    async with serving(owner, Limits(linger=60)) as (server, address):
        peer = Raw(address)
        await peer.send(ask().encode())
        await until(lambda: owner.requests, "the request")
        closing = asyncio.create_task(server.close(grace=60))
        [received] = await peer.commands(1)
        assert received.body == body
        assert await peer.read() == b""
        peer.socket.close()
        await closing
        assert owner.causes == [None]


async def test_closing_drops_what_a_deaf_client_does_not_take() -> None:
    owner = Recorder()
    loop = asyncio.get_running_loop()
    async with serving(owner) as (server, address), Raw(address):
        await until(lambda: owner.opened, "the connection")
        owner.opened[0].write(bytes(20 * MIB))
        started, own = loop.time(), own_time()
        await server.close(grace=0.1)
        assert loop.time() - started > 0.09
        assert own_time() - own < 2
        assert len(owner.closed) == 1
        assert len(server.connections) == 0


async def test_our_own_clients_let_a_server_go_at_once() -> None:
    server_side, client_side = Recorder(), Recorder()
    async with serving(server_side) as (server, address), dialling(client_side) as dialer:
        await dialer.connect(address)
        await until(lambda: server_side.opened, "the connection")
        own = own_time()
        await server.close(grace=30)
        assert own_time() - own < 5
        await until(lambda: client_side.closed, "the end")
        assert isinstance(client_side.causes[0], ConnectionLost)


async def test_closing_twice_or_without_ever_listening_is_fine() -> None:
    server = Server(Recorder())
    await server.close()
    await asyncio.gather(server.close(), server.close())


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_arrives_during_the_close_is_turned_away(turns: int) -> None:
    """It may be in the kernel's queue, accepted, or about to be made known."""
    owner = Recorder()
    server = Server(owner)
    address = str(await server.listen(LOOPBACK, 0))
    peers = [Raw(address) for _ in range(5)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await server.close(grace=0.1)
    for peer in peers:
        with suppress(ConnectionResetError):
            assert await peer.read_to_end() == b""
        peer.socket.close()
    assert set(owner.opened) == {connection for connection, _ in owner.closed}
    assert len(server.connections) == 0


def test_a_wildcard_is_no_address_to_give_to_others() -> None:
    assert reachable_host("10.1.2.3") == "10.1.2.3"
    for wildcard in ("0.0.0.0", "::", ""):
        assert reachable_host(wildcard) not in {"0.0.0.0", "::", ""}
        socket.inet_aton(reachable_host(wildcard))
