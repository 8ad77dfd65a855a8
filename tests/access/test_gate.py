"""The gate of a running broker: users that stay, both kinds of access control, what costs nothing."""

import asyncio
import json
import logging
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.access.opening import acl_of_account, user_of_account
from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import InvalidInput
from pocketmq.protocol import Command
from pocketmq.protocol.requests.access import Account, User
from tests.access.attempts import ACCESS_FILE, acl, asked, create_user, heartbeat, send, sign
from tests.broker.running import Client, client, running
from tests.net.peers import Raw

MIB = 1024 * 1024
ROOT = '{"username":"root","password":"root-secret"}'
INNER = '{"accessKey":"inner","secretKey":"inner-secret"}'
USERS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": ROOT,
}


async def done(
    connected: Client, user: str, secret: str, request: tuple[int, dict[str, str], bytes]
) -> Command:
    code, fields, body = request
    return await connected.ask(code, sign(fields, body, user, secret), body)


async def test_users_and_rules_outlive_their_broker(tmp_path: Path) -> None:
    async with running(tmp_path, **USERS) as (_, address), client(address) as connected:
        for request in (
            create_user("alice", password="alice-secret"),
            acl("alice", "Topic:orders", "Pub", ip="127.0.0.1"),
            create_user("bob", password="bob-secret"),
            asked(3003, username="bob"),
        ):
            assert (await done(connected, "root", "root-secret", request)).code == 0
    async with running(tmp_path, **USERS) as (_, address), client(address) as connected:
        assert (await done(connected, "alice", "alice-secret", send("orders"))).code == 0
        assert (await done(connected, "bob", "bob-secret", send("orders"))).code == 16
        listed = json.loads((await done(connected, "root", "root-secret", asked(3010))).body)
        assert listed == [
            {
                "subject": "User:alice",
                "policies": [
                    {
                        "policyType": "Custom",
                        "entries": [
                            {
                                "resource": "Topic:orders",
                                "actions": ["Pub"],
                                "sourceIps": ["127.0.0.1"],
                                "decision": "Allow",
                            }
                        ],
                    }
                ],
            }
        ]


async def test_a_changed_password_of_the_first_user_stays(tmp_path: Path) -> None:
    async with running(tmp_path, **USERS) as (_, address), client(address) as connected:
        change = asked(3002, {"password": "new-secret"}, username="root")
        assert (await done(connected, "root", "root-secret", change)).code == 0
        assert (await done(connected, "root", "root-secret", send("orders"))).code == 16
    async with running(tmp_path, **USERS) as (_, address), client(address) as connected:
        assert (await done(connected, "root", "new-secret", send("orders"))).code == 0


async def test_changes_of_rules_count_at_once() -> None:
    async with running(**USERS) as (_, address), client(address) as connected:
        root = ("root", "root-secret")
        alice = ("alice", "alice-secret")
        assert (await done(connected, *root, create_user("alice", password=alice[1]))).code == 0
        seen = []
        for change in (
            acl("alice", "Topic:orders", "Pub"),
            acl("alice", "Topic:orders", "Pub", decision="Deny"),
            acl("alice", "Topic:orders", "Sub"),
            acl("alice", "Topic:*", "All"),
            asked(3008, subject="User:alice", resource="Topic:orders"),
            asked(3008, subject="User:alice", resource="Topic:*"),
            acl("alice", "*", "All"),
            asked(3008, subject="User:alice"),
            acl("alice", "*", "All"),
            asked(3003, username="alice"),
        ):
            assert (await done(connected, *root, change)).code == 0
            seen.append((await done(connected, *alice, send("orders"))).code)
        assert seen == [0, 16, 16, 0, 0, 16, 0, 16, 0, 16]


async def test_both_kinds_have_to_be_passed(tmp_path: Path) -> None:
    """As in Java the answer is that of the users if both refuse."""
    path = tmp_path / "plain_acl.yml"
    path.write_text(ACCESS_FILE)
    both: dict[str, Any] = {"acl_enable": True, "acl_file": str(path)} | USERS
    async with running(**both) as (_, address), client(address) as connected:
        as_root = await done(connected, "root", "root-secret", send("orders"))
        assert (as_root.code, as_root.remark) == (
            1,
            "org.apache.rocketmq.acl.common.AclException: No acl config for root",
        )
        as_account = await done(connected, "rootkey1", "rootsecret", send("orders"))
        assert (as_account.code, as_account.remark) == (16, "User:rootkey1 is not found.")
        same = asked(3001, {"password": "rootsecret", "userType": "Super"}, username="rootkey1")
        root_only = await done(connected, "root", "root-secret", same)
        assert root_only.code == 1


async def test_accounts_can_become_users(tmp_path: Path) -> None:
    path = tmp_path / "plain_acl.yml"
    path.write_text(ACCESS_FILE)
    moved: dict[str, Any] = {"migrate_auth_from_v1_enabled": True, "acl_file": str(path)} | USERS
    async with running(**moved) as (_, address), client(address) as connected:
        for user, secret, request, code in (
            ("rootkey1", "rootsecret", send("anything"), 0),
            ("alicekey", "alicesecret", send("orders"), 0),
            ("alicekey", "alicesecret", send("outbox"), 16),
            ("alicekey", "alicesecret", send("other"), 16),
            ("alicekey", "alicesecret", heartbeat("any-group", "orders"), 0),
            ("alicekey", "alicesecret", heartbeat("payroll", "orders"), 16),
            ("whitekey", "any", send("orders"), 16),
        ):
            assert (await done(connected, user, secret, request)).code == code, (user, request)


def test_an_account_without_permissions_becomes_a_user_without_rules() -> None:
    account = Account(access_key="somebody", secret_key="secret12")
    assert user_of_account(account) == User(
        username="somebody", password="secret12", user_type="Normal"
    )
    assert acl_of_account(account).policies == []


async def test_white_listed_requests_need_no_user_or_no_right() -> None:
    lists = {"authentication_whitelist": "34, 310", "authorization_whitelist": "34"}
    async with running(**USERS | lists) as (_, address), client(address) as connected:
        code, fields, body = heartbeat("g", "orders")
        assert (await connected.ask(code, fields, body)).code == 0
        code, fields, body = send("orders")
        answer = await connected.ask(code, fields, body)
        assert (answer.code, answer.remark) == (
            16,
            "Authorization failed. Please verify your access rights and try again.",
        )


async def test_authentication_alone_lets_every_user_do_everything() -> None:
    only: dict[str, Any] = {"authentication_enabled": True, "init_authentication_user": ROOT}
    async with running(**only) as (_, address), client(address) as connected:
        assert (
            await done(
                connected, "root", "root-secret", create_user("alice", password="alice-secret")
            )
        ).code == 0
        assert (await done(connected, "alice", "alice-secret", send("orders"))).code == 0
        assert (await done(connected, "alice", "wrong", send("orders"))).code == 16


async def test_what_is_refused_one_way_is_neither_answered_nor_done() -> None:
    async with running(**USERS) as (broker, address), client(address) as connected:
        code, fields, _ = send("orders")
        connected.post_oneway(code, fields)
        asking = sign({}, b"", "root", "root-secret")
        assert (await connected.ask(28, asking)).code == 0
        assert connected.unasked == []
        assert broker.state.traffic.messages_in == 0
        assert "orders" not in broker.state.topics


async def test_secrets_are_in_no_log_and_no_answer_about_settings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    both = USERS | {"inner_client_authentication_credentials": INNER}
    with caplog.at_level(logging.DEBUG):
        async with running(**both) as (broker, address), client(address) as connected:
            root = ("root", "root-secret")
            request = create_user("alice", password="alice-secret")
            assert (await done(connected, *root, request)).code == 0
            assert (await done(connected, "inner", "inner-secret", send("orders"))).code == 0
            settings = (await done(connected, *root, asked(26))).body.decode()
            assert "initAuthenticationUser=***" in settings
            shown = settings + repr(broker.config) + repr(broker.state.users.entries)
    for secret in ("root-secret", "inner-secret", "alice-secret"):
        assert secret not in caplog.text
        assert secret not in shown


async def test_access_control_cannot_be_turned_off_over_the_wire() -> None:
    async with running(**USERS) as (broker, address), client(address) as connected:
        changes = b"authenticationEnabled=false\naclEnable=false\ntls.server.mode=disabled\n"
        answer = await done(connected, "root", "root-secret", (25, {}, changes))
        assert answer.code == 29
        assert answer.remark == "authenticationEnabled can only be set at startup"
        assert broker.state.config.authentication_enabled
        assert broker.state.config.tls_server_mode == "permissive"
        assert (await connected.ask(28)).code == 16


async def test_a_broker_without_access_control_has_no_gate() -> None:
    async with running() as (broker, address), client(address) as connected:
        assert broker.state.gate is None
        assert (await done(connected, "anybody", "x", send("orders"))).code == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"initAuthenticationUser": "root"},
        {"initAuthenticationUser": '{"username":"root"}'},
        {"innerClientAuthenticationCredentials": '{"accessKey":"","secretKey":"hush!"}'},
        {"tls.server.mode": "maybe"},
        {"tls.server.mode": "enforcing"},
        {"tls.server.need.client.auth": "perhaps"},
        {"aclEnable": "true"},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        BrokerConfig.from_properties(settings)
    assert "hush!" not in str(caught.value)


async def test_addresses_that_a_listed_balancer_tells_count(tmp_path: Path) -> None:
    """Who comes through it is known by their own address, not by the balancer's."""
    path = tmp_path / "plain_acl.yml"
    path.write_text(ACCESS_FILE)
    settings: dict[str, Any] = {"acl_enable": True, "acl_file": str(path)}
    code, fields, body = send("orders")
    request = Command.request(code, 7, fields, body).encode()
    async with running(**settings | {"ha_proxy_addresses": "127.0.0.1"}) as (_, address):
        for source, served in (("10.10.103.7", True), ("10.10.104.7", False)):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(f"PROXY TCP4 {source} 10.0.0.1 5000 10911\r\n".encode() + request)
            answer = await reader.read(1 << 16)
            assert (b"No accessKey is configured" in answer) is not served
            writer.close()
            await writer.wait_closed()


async def ended(peer: Raw) -> None:
    """Wait until the other end closes the connection."""
    with suppress(OSError):
        assert await peer.read() == b""


async def test_strangers_share_a_quarter_of_the_memory_and_a_signed_first_send_passes() -> None:
    """Four strangers hold unfinished frames; a client's very first request is a large send."""
    frame = (12 * MIB).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(4 * MIB)
    async with running(max_connection_memory=16 * MIB, **USERS) as (_, address):
        strangers = [Raw(str(address)) for _ in range(4)]
        sending = [asyncio.create_task(each.send(frame)) for each in strangers]
        try:
            async with client(address) as connected:
                code, fields, _ = send("orders")
                body = bytes(3 * MIB)
                answer = await connected.ask(code, sign(fields, body, "root", "root-secret"), body)
                assert answer.code == 0, answer.remark
            sending += [asyncio.create_task(ended(each)) for each in strangers]
            await next(asyncio.as_completed(sending[4:], timeout=10))  # one is cut off
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
            for each in strangers:
                each.socket.close()


async def test_names_of_a_mebibyte_are_not_remembered() -> None:
    """A rule for all topics with a prefix allows any name, also those that no topic can have."""
    async with running(**USERS) as (_, address), client(address) as connected:
        for request in (
            create_user("alice", password="alice-secret"),
            acl("alice", "Topic:orders*", "Pub"),
        ):
            assert (await done(connected, "root", "root-secret", request)).code == 0
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for number in range(16):
                name = f"orders{number}" + "x" * MIB
                answer = await done(connected, "alice", "alice-secret", send(name))
                assert "topic" in (answer.remark or "").lower()
            del name, answer
            kept = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert kept < 6 * MIB
