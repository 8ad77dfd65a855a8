"""The certificate of servers that were given none: made when needed, kept, shared, renewed."""

import asyncio
import logging
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pocketmq.net import Handshake, Limits, Server, Tls, parse_address, self_signed
from pocketmq.net.self_signed import FILE_NAME, SelfSigned, kept_or_made
from tests.net.peers import Raw, Recorder, ask, dialling, echo

UNVERIFIED = Tls(verify=False)


async def reached(address: str, tls: Tls | None) -> bool:
    async with dialling(Recorder(), Limits(silence=0.1), tls) as dialer:
        return (await dialer.request(address, ask(b"x"), 10)).body == b"x"


async def shown(address: str) -> bytes:
    """The certificate that a server shows."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = parse_address(address)
    _, writer = await asyncio.open_connection(host, port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


class Serving:
    """A server that was given no certificate."""

    def __init__(self, file: Path | None) -> None:
        self.server = Server(Recorder(echo))
        self._file = file

    async def __aenter__(self) -> str:
        self.server.guard(Handshake(SelfSigned(self._file), (), self.server.limits))
        return str(await self.server.listen("127.0.0.1", 0))

    async def __aexit__(self, *_: object) -> None:
        await self.server.close(grace=0.2)


async def test_tls_and_plain_clients_are_served_without_a_certificate(tmp_path: Path) -> None:
    async with Serving(tmp_path / FILE_NAME) as address:
        assert await reached(address, UNVERIFIED)
        assert await reached(address, None)


async def test_plain_clients_cause_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    async with Serving(file) as address:
        assert await reached(address, None)
        assert not file.exists()
        assert await reached(address, UNVERIFIED)
        assert file.exists()


async def test_it_is_kept_for_its_owner_alone_and_used_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "new" / FILE_NAME
    async with Serving(file) as address:
        first = await shown(address)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in file.parent.iterdir()] == [FILE_NAME]
    async with Serving(file) as address:
        assert await shown(address) == first


async def test_its_own_file_verifies_it(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    async with Serving(file) as address:
        await shown(address)
        assert await reached(address, Tls(ca=str(file)))


async def test_many_first_clients_get_one_certificate() -> None:
    async with Serving(None) as address:
        assert len(set(await asyncio.gather(*(shown(address) for _ in range(5))))) == 1


async def test_it_is_renewed_before_it_expires_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, begun = tmp_path / FILE_NAME, datetime.now(UTC)
    async with Serving(file) as address:
        first = await shown(address)
        monkeypatch.setattr(self_signed, "_now", lambda: begun + timedelta(days=360))
        assert await shown(address) == first
        monkeypatch.setattr(self_signed, "_now", lambda: begun + timedelta(days=370))
        second = await shown(address)
        assert second != first
        assert await shown(address) == second
    _, end = kept_or_made(file)
    assert end > begun + timedelta(days=700)


def test_processes_that_need_it_at_the_same_time_agree(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    with ThreadPoolExecutor(8) as pool:
        found = {pem for pem, _ in pool.map(kept_or_made, [file] * 8)}
    assert found == {file.read_bytes()}


@pytest.mark.parametrize("damaged", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nQQ=="])
def test_a_damaged_file_is_replaced(
    tmp_path: Path, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / FILE_NAME
    file.write_bytes(damaged)
    pem, _ = kept_or_made(file)
    assert file.read_bytes() == pem
    assert "certificate unusable" in caplog.text


async def test_a_directory_that_cannot_be_written_to_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    async with Serving(tmp_path / "file" / FILE_NAME) as address:
        assert await reached(address, UNVERIFIED)
    assert "cannot store the self-signed certificate" in caplog.text


async def test_without_the_package_one_line_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    async with Serving(None) as address:
        for _ in range(2):
            async with Raw(address) as client:
                await client.send(b"\x16\x03\x01")
                with suppress(ConnectionResetError):  # closed with a byte unread
                    assert await client.read() == b""
        assert await reached(address, None)
    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    (line,) = (each.getMessage() for each in warned)
    assert line.endswith("pip install 'pocketmq[tls]', or set a certificate")
