"""The proxy's port: which connections are relayed, and what becomes of those that stall or end."""

import asyncio
import shutil
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pocketmq.errors import ListenFailed
from pocketmq.net import ServerTls, TlsMode
from pocketmq.net.handshake import Handshake
from pocketmq.net.limits import Limits
from pocketmq.proxy.front import Front, port_tls
from pocketmq.proxy.relay_inlet import RelayInlet
from tests.loops import until
from tests.net.certificates import make_certificates

PATIENCE = 30.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Inside:
    """A server in the place of gRPC's; remembers its connections."""

    def __init__(self, front: Front, relays: RelayInlet, port: int) -> None:
        self.front = front
        self.relays = relays
        self.port = port
        self.writers: list[asyncio.StreamWriter] = []
        self.ended = 0
        self._clients: list[asyncio.StreamWriter] = []

    async def open(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect a client, which is closed with the front."""
        where: dict[str, Any] = {"host": "127.0.0.1", "port": self.port}
        if "sock" in options:
            where = {}
        reader, writer = await asyncio.open_connection(**where, **options)
        self._clients.append(writer)
        return reader, writer

    async def hang_up(self) -> None:
        for each in self._clients:
            with suppress(AttributeError):  # closed by TLS before, until Python 3.11.4
                each.transport.abort()
            with suppress(OSError):
                await each.wait_closed()

    @property
    def peers(self) -> list[str]:
        """The addresses that gRPC would see."""
        names = [each.get_extra_info("peername") for each in self.writers]
        return [f"{name[0]}:{name[1]}" for name in names]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def started() -> bool:
    return True


@asynccontextmanager
async def relaying(
    serve: Serve = echo, tls: ServerTls | None = None, **limits: Any
) -> AsyncIterator[Inside]:
    """Run a front before a server."""
    own = Limits(**limits)
    speaks = port_tls(tls)
    assert speaks is not None
    relays = RelayInlet(own, started)
    front = Front(Handshake(speaks, (), own), own, relays)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside.writers.append(writer)
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            inside.ended += 1
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    relays.lead_to(server.sockets[0].getsockname()[1])
    port = (await front.listen("127.0.0.1", 0)).port
    inside = Inside(front, relays, port)
    try:
        yield inside
    finally:
        await front.close()
        await inside.hang_up()
        await until(lambda: inside.ended == len(inside.writers), "the end inside")
        server.close()
        await server.wait_closed()


def trusting_all() -> ssl.SSLContext:
    """As Apache's gRPC clients are: TLS, whatever the certificate is."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What still comes until the end."""
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_plain_and_tls_clients_use_one_port() -> None:
    async with relaying() as inside:
        for options in ({}, {"ssl": trusting_all()}):
            reader, writer = await inside.open(**options)
            writer.write(PREFACE)
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            if options:
                spoken = writer.get_extra_info("ssl_object")
                assert spoken.selected_alpn_protocol() == "h2"
                assert b"PocketMQ self-signed" in spoken.getpeercert(binary_form=True)
            writer.close()
        await until(lambda: inside.ended == 2, "the end inside")


async def test_large_amounts_arrive_whole_in_both_directions() -> None:
    sent = bytes(range(256)) * 16 * 1024
    async with relaying() as inside:
        for options in ({}, {"ssl": trusting_all()}):
            reader, writer = await inside.open(**options)
            writer.write(sent)
            async with asyncio.timeout(PATIENCE):
                assert await reader.readexactly(len(sent)) == sent
            writer.close()


async def test_the_client_behind_a_peer_is_named_by_its_own_address() -> None:
    async with relaying() as inside:
        _, writer = await inside.open(local_addr=("127.0.0.2", 0))
        writer.write(PREFACE)
        await until(lambda: inside.writers, "a connection inside")
        (peer,) = inside.peers
        own = writer.get_extra_info("sockname")
        assert inside.relays.address_of(peer) == f"127.0.0.2:{own[1]}"
        writer.close()
        await until(lambda: inside.ended == 1, "the end inside")
        await until(lambda: inside.relays.address_of(peer) is None, "the end of its address")


async def test_a_connection_to_the_port_inside_has_no_address() -> None:
    async with relaying() as inside:
        assert inside.relays.address_of("127.0.0.1:5") is None


async def test_an_enforcing_port_refuses_plain_clients(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    async with relaying(tls=made.serving(TlsMode.ENFORCING)) as inside:
        reader, writer = await inside.open()
        writer.write(PREFACE)
        assert await closed(reader) == b""
        _, writer = await inside.open(ssl=made.asking().context())
        writer.write(PREFACE)
        await until(lambda: inside.writers, "a connection inside")
        writer.close()


async def test_a_client_certificate_is_required_where_it_is_asked_for(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    tls = made.serving(TlsMode.ENFORCING, auth="require")
    async with relaying(tls=tls) as inside:

        async def first_byte() -> bytes:
            reader, writer = await inside.open(ssl=made.asking().context())
            writer.write(PREFACE)
            return await reader.readexactly(1)

        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await first_byte()
        reader, writer = await inside.open(ssl=made.asking(shown=True).context())
        writer.write(PREFACE)
        assert await reader.readexactly(len(PREFACE)) == PREFACE
        assert len(inside.writers) == 1
        writer.close()


async def test_certificates_that_were_replaced_are_used_without_a_restart(tmp_path: Path) -> None:
    first, second = make_certificates(tmp_path / "a"), make_certificates(tmp_path / "b")
    async with relaying(tls=first.serving()) as inside:
        _, writer = await inside.open(ssl=first.asking().context())
        writer.close()
        for new, old in ((second.server, first.server), (second.server_key, first.server_key)):
            shutil.move(new, old)
        asked = second.asking().context()

        async def reached() -> asyncio.StreamWriter:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        return (await inside.open(ssl=asked))[1]
                    except ssl.SSLError:
                        await asyncio.sleep(0.05)

        (await reached()).close()


async def test_clients_that_say_nothing_are_closed() -> None:
    """One that sends no byte, and one that stalls in its TLS handshake; none gets inside."""
    async with relaying(idle=0.05, handshake=0.05) as inside:
        silent, _ = await inside.open()
        stalled, other = await inside.open()
        other.write(b"\x16\x03\x01")
        assert await closed(silent) == b""
        assert await closed(stalled) == b""
        assert not inside.writers


async def test_more_clients_than_allowed_are_closed_at_once() -> None:
    async with relaying(connections=1) as inside:
        _, first = await inside.open()
        first.write(PREFACE)
        await until(lambda: inside.writers, "a connection inside")
        reader, _ = await inside.open()
        assert await closed(reader) == b""
        first.close()
        await until(lambda: inside.ended == 1, "the end inside")

        async def served() -> bytes:
            reader, writer = await inside.open()
            writer.write(PREFACE)
            try:
                return await reader.read(len(PREFACE))
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

        async with asyncio.timeout(PATIENCE):
            while await served() != PREFACE:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.005)


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write for ever, as long as it is read."""
    await reader.read(1)
    while True:
        writer.write(bytes(65536))
        await writer.drain()
        flooded.append(65536)


flooded: list[int] = []


@pytest.mark.parametrize("over_tls", [False, True])
async def test_a_client_that_reads_nothing_stops_its_server_and_is_closed(over_tls: bool) -> None:
    flooded.clear()
    options = {"ssl": trusting_all()} if over_tls else {}
    async with relaying(flood, write_stall=0.3) as inside:
        sock = socket.create_connection(("127.0.0.1", inside.port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.setblocking(False)
        _, writer = await inside.open(
            sock=sock, limit=1024, **options, **({"server_hostname": ""} if over_tls else {})
        )
        writer.write(b"P")
        await until(lambda: inside.ended == 1, "the end inside")  # the front has closed it
        assert sum(flooded) < 32 * 1024 * 1024  # kernel buffers, and no more


async def test_the_last_bytes_arrive_before_the_end() -> None:
    async def answer_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(bytes(1_000_000))

    async with relaying(answer_and_close, linger=60) as inside:
        for options in ({}, {"ssl": trusting_all()}):
            reader, writer = await inside.open(**options)
            writer.write(b"P")
            assert len(await closed(reader)) == 1_000_000
            writer.close()


async def test_a_client_that_stops_reading_the_last_bytes_is_closed() -> None:
    async def answer_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(bytes(8_000_000))

    async with relaying(answer_and_close, linger=2, write_stall=2) as inside:
        sock = socket.create_connection(("127.0.0.1", inside.port))
        sock.setblocking(False)
        loop, taken = asyncio.get_running_loop(), 0
        await loop.sock_sendall(sock, b"P")
        while taken < 4_000_000:
            data = await loop.sock_recv(sock, 65536)
            assert data, "closed while it was read"
            taken += len(data)
        await until(lambda: inside.ended == 1, "the end inside")
        await until(lambda: not inside.relays._open, "the end of the relay")
        sock.close()


async def test_without_the_package_for_certificates_only_plain_clients_are_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    caplog.set_level("INFO", "pocketmq.proxy")
    async with relaying() as inside:
        with pytest.raises(OSError):  # noqa: PT011 - reset or ended, as it happens
            await inside.open(ssl=trusting_all())
        reader, writer = await inside.open()
        writer.write(PREFACE)
        assert await reader.readexactly(len(PREFACE)) == PREFACE
    assert "no package to make one" in caplog.text


async def test_closing_ends_open_silent_and_stuck_clients() -> None:
    flooded.clear()
    async with relaying(flood, linger=0.1) as inside:
        _, stuck = await inside.open(limit=1024)
        stuck.write(b"P")
        await until(lambda: flooded, "a flood")
        silent, _ = await inside.open()
        await inside.front.close()
        assert await closed(silent) == b""
        with pytest.raises(ConnectionRefusedError):
            await inside.open()


async def test_a_port_in_use_cannot_be_listened_on() -> None:
    async with relaying() as inside:
        own = Limits()
        other = Front(Handshake(port_tls(None), (), own), own, RelayInlet(own, started))
        with pytest.raises(ListenFailed):
            await other.listen("127.0.0.1", inside.port)


def test_disabled_tls_needs_no_front() -> None:
    assert port_tls(ServerTls(mode=TlsMode.DISABLED)) is None


def test_the_settings_of_a_server_are_kept(tmp_path: Path) -> None:
    given = make_certificates(tmp_path).serving(TlsMode.ENFORCING, auth="require")
    kept = port_tls(given)
    assert isinstance(kept, ServerTls)
    assert msgspec.structs.asdict(kept) == msgspec.structs.asdict(given)
