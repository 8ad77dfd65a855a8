"""Everything somebody may try against access control and TLS, and the answer each attempt gets."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pocketmq.net import Address
from pocketmq.protocol import Command
from tests.access.attempts import (
    ACCESS_FILE,
    ACCOUNT_ATTEMPTS,
    ACCOUNT_SETUP,
    ACCOUNTS,
    USER_ATTEMPTS,
    USER_SETUP,
    USERS,
    Answer,
    Attempt,
    carried_out,
    sign,
)
from tests.broker.running import client, running
from tests.net.certificates import Certificates, make_certificates

ROOT = '{"username":"root","password":"root-secret"}'


def expected(attempts: list[Attempt]) -> dict[str, Answer]:
    assert len({attempt.name for attempt in attempts}) == len(attempts)
    return {attempt.name: attempt.answer for attempt in attempts}


async def test_every_attempt_on_users_and_rules_gets_javas_answer() -> None:
    async with (
        running(
            authentication_enabled=True, authorization_enabled=True, init_authentication_user=ROOT
        ) as (_, address),
        client(address) as connected,
    ):
        for code, fields, body in USER_SETUP:
            answer = await connected.ask(code, sign(fields, body, "root", USERS["root"]), body)
            assert answer.code == 0, answer.remark
        assert await carried_out(connected, USER_ATTEMPTS, USERS) == expected(USER_ATTEMPTS)


async def test_every_attempt_on_accounts_gets_javas_answer(tmp_path: Path) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text(ACCESS_FILE)
    async with (
        running(acl_enable=True, acl_file=str(file)) as (_, address),
        client(address) as connected,
    ):
        for code, fields, body in ACCOUNT_SETUP:
            answer = await connected.ask(code, sign(fields, body, "rootkey1", "rootsecret"), body)
            assert answer.code == 0, answer.remark
        found = await carried_out(connected, ACCOUNT_ATTEMPTS, ACCOUNTS)
        assert found == expected(ACCOUNT_ATTEMPTS)


# TLS: who comes in by which door

SERVED, CLOSED = "served", "closed"
DOORS: dict[str, dict[str, str]] = {
    "no certificate": {},
    "disabled": {"mode": "disabled"},
    "permissive": {"mode": "permissive"},
    "enforcing": {"mode": "enforcing"},
    "optional certificate": {"mode": "enforcing", "auth": "optional"},
    "required certificate": {"mode": "enforcing", "auth": "require"},
}
TLS_ATTEMPTS: dict[str, set[str]] = {
    # who comes: doors at which they are served; at all others they are let go
    "plain": {"no certificate", "disabled", "permissive"},
    "TLS": {"permissive", "enforcing", "optional certificate"},
    "TLS 1.2": {"permissive", "enforcing", "optional certificate"},
    "TLS with a good certificate": {
        "permissive", "enforcing", "optional certificate", "required certificate",
    },
    "TLS with a stranger's certificate": {"permissive", "enforcing"},
    "half a handshake": set(),
    "plain after a handshake has begun": set(),
    "a PROXY header": set(),
    "HTTP": set(),
}  # fmt: skip


class Certified(NamedTuple):
    own: Certificates
    strange: Certificates


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    made = (make_certificates(tmp_path_factory.mktemp(name)) for name in ("own", "strange"))
    return Certified(*made)


def context_of(kind: str, certified: Certified) -> ssl.SSLContext | None:
    if not kind.startswith("TLS"):
        return None
    own, strange = certified
    shown = {"TLS with a good certificate": own, "TLS with a stranger's certificate": strange}
    context = own.asking().context()
    if kind in shown:
        context.load_cert_chain(shown[kind].client, shown[kind].client_key)
    if kind == "TLS 1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


async def outcome(address: Address, kind: str, certified: Certified) -> str:
    request = Command.request(28, 7, {}).encode()
    hello = b"\x16\x03\x01\x00\xf0\x01\x00"
    said = {
        "half a handshake": hello,
        "plain after a handshake has begun": hello + request,
        "a PROXY header": b"PROXY TCP4 10.10.103.1 10.0.0.1 1 2\r\n" + request,
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    }
    writer = None
    try:
        async with asyncio.timeout(20):
            context = context_of(kind, certified)
            reader, writer = await asyncio.open_connection(*address, ssl=context)
            writer.write(said.get(kind, request))
            if kind in said:
                writer.write_eof()
            return SERVED if b'"opaque":7' in await reader.read(1 << 16) else CLOSED
    except (ssl.SSLError, ConnectionError):
        return CLOSED
    finally:
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@pytest.mark.parametrize("door", DOORS)
async def test_every_kind_of_peer_is_served_or_let_go(certified: Certified, door: str) -> None:
    settings: dict[str, Any] = dict(certified.own.settings(**DOORS[door]) if DOORS[door] else {})
    async with running(**settings) as (broker, address):
        found = {kind: await outcome(address, kind, certified) for kind in TLS_ATTEMPTS}
        assert found == {
            kind: SERVED if door in doors else CLOSED for kind, doors in TLS_ATTEMPTS.items()
        }
        assert broker.state.traffic.messages_in == 0
