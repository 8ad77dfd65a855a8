"""TLS: three modes on one port, certificates of both sides, and their renewal."""

import asyncio
import logging
import shutil
import ssl
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from pocketmq.errors import ConnectFailed, ConnectionLost, InvalidInput
from pocketmq.net import ClientAuth, Handshake, Limits, ServerTls, Tls, TlsMode
from pocketmq.net.tls import Contexts
from tests.loops import leap, leaping, until
from tests.net.certificates import Certificates, make_certificates
from tests.net.peers import Raw, Recorder, ask, dialling, echo, serving

PERMISSIVE, ENFORCING = TlsMode.PERMISSIVE, TlsMode.ENFORCING
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("others"))


async def reached(address: str, tls: Tls | None, body: bytes = b"x") -> bool:
    """Whether a client that speaks so gets its answer."""
    async with dialling(Recorder(), tls=tls) as dialer:
        return (await dialer.request(address, ask(body), 10)).body == body


async def refusal(address: str, tls: Tls | None) -> str:
    """Why a client that speaks so gets none: at once, or with its first question."""
    async with dialling(Recorder(), Limits(silence=0.1), tls) as dialer:
        with pytest.raises(ConnectFailed) as caught:
            await dialer.connect(address)
        return caught.value.reason


async def test_permissive_takes_both_kinds_on_one_port(made: Certificates) -> None:
    async with serving(Recorder(echo), tls=made.serving()) as (_, address):
        assert await reached(address, made.asking())
        assert await reached(address, None)


async def test_enforcing_closes_what_is_plain(made: Certificates) -> None:
    owner = Recorder(echo)
    async with serving(owner, tls=made.serving(ENFORCING)) as (_, address):
        async with Raw(address) as raw:
            await raw.send(ask(b"x").encode())
            with Closing():
                assert await raw.read() == b""
        assert owner.opened == []
        assert await reached(address, made.asking())


class Closing:
    """A peer that closes with bytes unread resets, which is as good."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, ConnectionResetError)


async def test_without_tls_a_client_hello_is_closed(made: Certificates) -> None:
    async with serving(Recorder(echo)) as (_, address):
        assert "does it speak TLS" in await refusal(address, made.asking())


async def test_large_frames_pass_in_both_directions(made: Certificates) -> None:
    body = bytes(range(256)) * (MIB // 32)
    async with serving(Recorder(echo), tls=made.serving(ENFORCING)) as (_, address):
        assert await reached(address, made.asking(), body)


async def test_many_requests_at_once_are_answered_in_tls_too(made: Certificates) -> None:
    bodies = [b"%d" % number for number in range(500)]
    async with (
        serving(Recorder(echo), tls=made.serving()) as (_, address),
        dialling(Recorder(), tls=made.asking()) as dialer,
    ):
        answers = await asyncio.gather(*(dialer.request(address, ask(b), 10) for b in bodies))
        assert [answer.body for answer in answers] == bodies
        assert len(dialer.connections) == 1


async def test_a_server_of_another_root_is_not_believed(
    made: Certificates, others: Certificates
) -> None:
    async with serving(Recorder(echo), tls=others.serving()) as (_, address):
        assert "certificate verification failed" in await refusal(address, made.asking())
        assert await reached(address, made.asking(verify=False))


async def test_a_certificate_of_another_host_is_not_believed(tmp_path: Path) -> None:
    elsewhere = make_certificates(tmp_path, host="mq.example.com")
    async with serving(Recorder(echo), tls=elsewhere.serving()) as (_, address):
        assert "certificate verification failed" in await refusal(address, elsewhere.asking())
        assert await reached(address, elsewhere.asking(check_hostname=False))
        named = Tls(ca=elsewhere.root, server_name="mq.example.com")
        assert await reached(address, named)


async def test_require_takes_nobody_without_a_certificate(
    made: Certificates, others: Certificates
) -> None:
    owner = Recorder(echo)
    async with serving(owner, tls=made.serving(ENFORCING, "require")) as (_, address):
        for tls in (made.asking(), Tls(ca=made.root, cert=others.client, key=others.client_key)):
            async with dialling(Recorder(), tls=tls) as dialer:
                # In TLS 1.3 the client learns of it with its first read.
                with pytest.raises((ConnectFailed, ConnectionLost)):
                    await dialer.request(address, ask(), 5)
        assert owner.batches == []
        assert await reached(address, made.asking(shown=True))


async def test_optional_takes_a_good_certificate_or_none(
    made: Certificates, others: Certificates
) -> None:
    async with serving(Recorder(echo), tls=made.serving(PERMISSIVE, "optional")) as (_, address):
        assert await reached(address, made.asking())
        assert await reached(address, made.asking(shown=True))
        stranger = Tls(ca=made.root, cert=others.client, key=others.client_key)
        async with dialling(Recorder(), tls=stranger) as dialer:
            with pytest.raises((ConnectFailed, ConnectionLost)):
                await dialer.request(address, ask(), 5)


async def test_old_versions_of_tls_are_refused(made: Certificates) -> None:
    async with serving(Recorder(echo), tls=made.serving()) as (_, address):
        context = ssl.create_default_context(cafile=made.root)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        host, _, port = address.rpartition(":")
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await asyncio.open_connection(host, int(port), ssl=context)


@leaping
async def test_new_certificates_count_from_the_next_connection_on(
    made: Certificates, others: Certificates, tmp_path: Path
) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    shutil.copy(made.server, cert)
    shutil.copy(made.server_key, key)
    tls = ServerTls(mode=ENFORCING, cert=cert, key=key)
    async with (
        serving(Recorder(echo), tls=tls) as (_, address),
        dialling(Recorder(), tls=made.asking()) as before,
    ):
        assert (await before.request(address, ask(b"1"), 10)).body == b"1"
        shutil.copy(others.server, cert)
        shutil.copy(others.server_key, key)
        await leap(1)
        assert await reached(address, others.asking())
        assert "certificate verification failed" in await refusal(address, made.asking())
        assert (await before.request(address, ask(b"2"), 10)).body == b"2"


@leaping
async def test_new_files_that_cannot_be_used_change_nothing(
    made: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    shutil.copy(made.server, cert)
    shutil.copy(made.server_key, key)
    tls = ServerTls(mode=ENFORCING, cert=str(cert), key=str(key))
    async with serving(Recorder(echo), tls=tls) as (_, address):
        with caplog.at_level(logging.WARNING, "pocketmq.net"):
            key.write_text("no key")
            await leap(1)
            assert await reached(address, made.asking())
            key.unlink()
            await leap(1)
            assert await reached(address, made.asking())
        assert len(caplog.records) == 2
        assert "keeping the old ones" in caplog.text


async def test_files_that_cannot_be_used_are_told_at_the_start(
    made: Certificates, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing.pem")
    for tls in (
        ServerTls(cert=missing, key=missing),
        ServerTls(cert=made.server, key=made.client_key),
        ServerTls(cert=made.root, key=made.root),
    ):
        with pytest.raises(InvalidInput, match="TLS cannot use"):
            Handshake(tls, (), Limits())


def test_choices_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidInput, match="needs a certificate"):
        ServerTls(mode=ENFORCING)
    with pytest.raises(InvalidInput, match="need CA certificates"):
        ServerTls(cert="c", key="k", client_auth=ClientAuth.REQUIRE)


def test_a_locked_key_opens_with_its_password_only(made: Certificates, tmp_path: Path) -> None:
    """Without one nobody is asked at the terminal."""
    key = serialization.load_pem_private_key(Path(made.server_key).read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"open sesame"),
        )
    )
    Contexts(ServerTls(cert=made.server, key=str(locked), key_password="open sesame"), _never)
    for wrong in ("", "guess"):
        with pytest.raises(InvalidInput):
            Contexts(ServerTls(cert=made.server, key=str(locked), key_password=wrong), _never)


def _never() -> float:
    return 0.0


def test_passwords_are_not_shown() -> None:
    for tls in (ServerTls(cert="c", key_password="hidden!"), Tls(key_password="hidden!")):
        assert "hidden!" not in repr(tls)
        assert "hidden!" not in repr(tls.__rich_repr__())


@leaping
async def test_who_says_nothing_is_let_go(made: Certificates) -> None:
    limits = Limits(idle=30, handshake=5)
    async with (
        serving(Recorder(echo), limits, made.serving()) as (_, address),
        Raw(address) as silent,
        Raw(address) as hesitating,
    ):
        await hesitating.send(b"\x16\x03\x01")
        for _ in range(4):
            await leap(10)
        assert await silent.read() == b""
        assert await hesitating.read() == b""


async def test_a_server_closes_while_somebody_is_at_the_door(made: Certificates) -> None:
    owner = Recorder(echo)
    async with serving(owner, tls=made.serving()) as (server, address):
        async with Raw(address) as silent, Raw(address) as hesitating:
            await hesitating.send(b"\x16\x03\x01\x02\x00\x01")
            await until(lambda: len(server._arrivals) == 2, "both to arrive")
            await server.close(0.2)
            assert await silent.read() == b""
            # What it said was not read, on some loops: closing a socket resets it then.
            with suppress(ConnectionResetError):
                assert await hesitating.read() == b""
        assert owner.opened == []


async def test_those_at_the_door_count_as_connections(made: Certificates) -> None:
    async with (
        serving(Recorder(echo), Limits(connections=2), made.serving()) as (_, address),
        Raw(address),
        Raw(address),
        Raw(address) as third,
    ):
        assert await third.read() == b""


@pytest.mark.parametrize(
    "garbage",
    [b"\x16", b"\x16\x03\x01\xff\xff", b"\x16" * 600, b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x28"],
    ids=["begun", "long", "nonsense", "http", "alert"],
)  # fmt: skip
async def test_garbage_costs_its_sender_the_connection_only(
    made: Certificates, garbage: bytes
) -> None:
    owner = Recorder(echo)
    async with serving(owner, tls=made.serving()) as (_, address):
        async with Raw(address) as raw:
            await raw.send(garbage)
            raw.socket.shutdown(1)
            with Closing():
                await raw.read_to_end()
        assert await reached(address, made.asking())
        assert len(owner.requests) == 1
