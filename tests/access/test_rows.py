"""Every request a broker serves says what it needs; whoever has no rights is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.access import needs_by_code as rights
from pocketmq.broker.access.needs_by_code import NEEDS, READING
from pocketmq.broker.by_code import HANDLERS
from pocketmq.protocol import RequestCode
from pocketmq.protocol.signature import SigningUser
from pocketmq.protocol.signature import sign as sign_bound
from tests.access.attempts import Request, asked, create_user, heartbeat, send, sign
from tests.broker.running import client, running, send_fields

ROOT = '{"username":"root","password":"root-secret"}'
USERS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": ROOT,
}
ACCOUNTS = """{"accounts": [
  {"accessKey": "rootkey1", "secretKey": "rootsecret", "admin": true},
  {"accessKey": "nobodykey", "secretKey": "nobodysecret"}
]}"""


def producer_beat(client_id: str = "somebody") -> Request:
    beat = {"clientID": client_id, "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}]}
    return 34, {}, json.dumps(beat | {"consumerDataSet": []}).encode()


REPLIES = "DefaultCluster_REPLY_TOPIC"
OPEN: dict[int, Request] = {
    # Producer groups are no resource; what their members are shown is guarded where it is shown.
    34: producer_beat(),
    # Takes only the connection itself out of a producer group.
    35: asked(35, clientID="somebody", producerGroup="g"),
    # Replies go to a client that waits for a number nobody can guess.
    324: asked(324, topic=REPLIES, producerGroup="g", defaultTopic="TBW102", queueId="0", defaultTopicQueueNums="4", sysFlag="0", bornTimestamp="1", flag="0"),
    325: (325, send_fields(REPLIES), b"x"),
}  # fmt: skip
"""The requests that every user may make, as they may."""


def test_every_request_that_is_served_has_a_row() -> None:
    missing = {RequestCode(code).name for code in HANDLERS if code not in NEEDS}
    assert missing == set()


def test_a_right_is_stated_once() -> None:
    """By the request's row, or by one of the tables: none overrules another."""
    tables = rights._MESSAGES, rights._MEMBERS, rights._TOOLS, rights._CLUSTER
    assert len(NEEDS) == sum(map(len, tables))


def test_reading_requests_are_served_and_change_nothing() -> None:
    verbs = ("UPDATE", "DELETE", "CREATE", "SET_", "CLEAN", "RESET", "SEND", "ACK", "LOCK")
    names = {RequestCode(code).name for code in READING}
    assert {name for name in names if name.startswith(verbs)} == set()
    assert "GET_TOPIC_STATS_INFO" in names
    assert "GET_BROKER_CLUSTER_ACL_CONFIG" not in names  # holds secrets


@pytest.mark.parametrize("given", [{}, {"topic": "secret", "b": "secret"}])
async def test_a_user_without_rules_is_refused_everything(given: dict[str, str]) -> None:
    async with running(**USERS) as (_, address), client(address) as connected:
        code, fields, body = create_user("nobody", password="nobody-secret")
        made = await connected.ask(code, sign(fields, body, "root", "root-secret"), body)
        assert made.code == 0, made.remark
        passed = {}
        for code in sorted(HANDLERS):
            fields = sign(given, b"", "nobody", "nobody-secret")
            answer = await connected.ask(code, fields)
            if answer.code != 16:
                passed[code] = answer.remark
        assert passed.keys() == {35}  # to leave no group
        for code, fields, body in OPEN.values():
            signed = sign(fields, body, "nobody", "nobody-secret")
            answer = await connected.ask(code, signed, body)
            assert answer.code != 16, (code, answer.remark)
        assert (await connected.ask(9999, sign({}, b"", "nobody", "nobody-secret"))).code == 3


async def test_an_account_without_rights_is_refused_everything(tmp_path: Path) -> None:
    path = tmp_path / "plain_acl.json"
    path.write_text(ACCOUNTS)
    settings: dict[str, Any] = {"acl_enable": True, "acl_file": str(path)}
    async with running(**settings) as (_, address), client(address) as connected:
        passed = set()
        for code in sorted(HANDLERS):
            answer = await connected.ask(code, sign({}, b"", "nobodykey", "nobodysecret"))
            if "AclException" not in (answer.remark or ""):
                passed.add(code)
        assert passed == {35}
        for code, fields, body in OPEN.values():
            signed = sign(fields, body, "nobodykey", "nobodysecret")
            answer = await connected.ask(code, signed, body)
            assert "AclException" not in (answer.remark or ""), code
        assert (await connected.ask(9999, sign({}, b"", "nobodykey", "nobodysecret"))).code == 3


async def test_javas_way_is_restored_by_a_setting() -> None:
    settings = USERS | {"java_authorization": True}
    async with running(**settings) as (_, address), client(address) as connected:
        code, fields, body = create_user("nobody", password="nobody-secret")
        assert (
            await connected.ask(code, sign(fields, body, "root", "root-secret"), body)
        ).code == 0
        code, fields, body = send("secret")
        sent = await connected.ask(code, sign(fields, body, "root", "root-secret"), body)
        assert sent.code == 0
        for request, expected in (
            (asked(33, offset="0"), 0),
            (asked(21), 0),
            (asked(26), 0),
            (asked(25, topic="x"), 0),
            (asked(33, offset="0", topic="secret"), 16),
            (send("secret"), 16),
            (heartbeat("g", "secret"), 16),
        ):
            code, fields, body = request
            answer = await connected.ask(code, sign(fields, body, "nobody", "nobody-secret"), body)
            assert answer.code == expected, (request, answer.remark)


@pytest.mark.parametrize("kind", ["users", "accounts"])
async def test_changing_requests_have_to_be_bound_if_a_setting_says_so(
    tmp_path: Path, kind: str
) -> None:
    settings: dict[str, Any]
    if kind == "users":
        settings, user = dict(USERS), ("root", "root-secret")
    else:
        (tmp_path / "acl.json").write_text(ACCOUNTS)
        settings = {"acl_enable": True, "acl_file": str(tmp_path / "acl.json")}
        user = "rootkey1", "rootsecret"
    settings["require_signed_code"] = True
    async with running(**settings) as (_, address), client(address) as connected:
        code, fields, body = send("orders")
        refused = await connected.ask(code, sign(fields, body, *user), body)
        assert "requireSignedCode" in (refused.remark or "")
        bound = dict(fields)
        sign_bound(SigningUser(user[0], user[1].encode()), code, bound, body)
        assert (await connected.ask(code, bound, body)).code == 0
        assert (await connected.ask(202, sign({"topic": "orders"}, b"", *user))).code == 0
        assert (await connected.ask(215, sign({"topic": "orders"}, b"", *user))).code != 0
