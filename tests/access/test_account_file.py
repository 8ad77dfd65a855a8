"""The access file: its forms, its reload, and changes by admin requests."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.access.account_file import AccountFile
from pocketmq.errors import InvalidInput
from pocketmq.protocol.requests.access import Account
from tests.access.attempts import ACCESS_FILE, ACCOUNTS, send, sign
from tests.broker.running import Client, client, running
from tests.loops import until

AS_JSON = {
    "globalWhiteRemoteAddresses": ["10.10.103.*"],
    "accounts": [
        {"accessKey": "rootkey1", "secretKey": 12345678, "admin": True},
        {"accessKey": "alicekey", "secretKey": "alicesecret", "topicPerms": ["orders=PUB|SUB"]},
    ],
}
AS_TOML = """
globalWhiteRemoteAddresses = ["10.10.103.*"]
[[accounts]]
accessKey = "rootkey1"
secretKey = 12345678
admin = true
[[accounts]]
accessKey = "alicekey"
secretKey = "alicesecret"
topicPerms = ["orders=PUB|SUB"]
"""
AS_YAML = """
globalWhiteRemoteAddresses:
  - 10.10.103.*
accounts:
  - accessKey: rootkey1
    secretKey: 12345678
    whiteRemoteAddress:
    admin: true
  - accessKey: alicekey
    secretKey: alicesecret
    topicPerms:
      - orders=PUB|SUB
"""
FORMATS = {"a.json": json.dumps(AS_JSON), "a.toml": AS_TOML, "a.yml": AS_YAML, "b.yaml": AS_YAML}


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", [*FORMATS, "c.yml"])
def test_all_forms_say_the_same(tmp_path: Path, name: str) -> None:
    """Digits are a secret, too; JSON is YAML."""
    file = AccountFile(written(tmp_path, name, FORMATS.get(name, FORMATS["a.json"])))
    root, alice = file.listed
    assert (root.access_key, root.secret_key, root.admin) == ("rootkey1", "12345678", True)
    assert (alice.secret_key, alice.topic_perms) == ("alicesecret", ["orders=PUB|SUB"])
    assert file.white == ["10.10.103.*"]
    assert set(file.accounts.holders) == {"rootkey1", "alicekey"}


def test_without_a_yaml_reader_json_is_read_and_yaml_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = AccountFile(written(tmp_path, "c.yml", FORMATS["a.json"]))
    file.set_white(["10.0.0.1"], 1)
    assert json.loads(file.path.read_text())["globalWhiteRemoteAddresses"] == ["10.0.0.1"]
    with pytest.raises(InvalidInput, match=r"pip install 'pocketmq\[yaml\]'"):
        AccountFile(written(tmp_path, "d.yml", AS_YAML))


@pytest.mark.parametrize(
    "text",
    [
        "accounts: [",
        "- a\n- b",
        "accounts: hello",
        "accounts: [1]",
        "accounts:\n- accessKey: short\n  secretKey: longsecret",
        "accounts:\n- accessKey: longkey1\n  secretKey: short",
        "accounts:\n- accessKey: longkey1",
        "accounts:\n- {accessKey: longkey1, secretKey: longsecret, topicPerms: [orders]}",
        "accounts:\n- {accessKey: longkey1, secretKey: longsecret, topicPerms: [a=PUB=SUB]}",
        "accounts:\n- {accessKey: longkey1, secretKey: longsecret, whiteRemoteAddress: x}",
        "globalWhiteRemoteAddresses: [10.0.0.1/8]",
        "a: &a [*a]\naccounts: *a",
    ],
)
def test_what_is_no_access_file_is_refused_without_telling_secrets(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        AccountFile(written(tmp_path, "a.yml", text))
    assert "longsecret" not in str(caught.value)


def test_a_missing_or_huge_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        AccountFile(tmp_path / "missing.yml")
    with pytest.raises(InvalidInput, match="larger than"):
        AccountFile(written(tmp_path, "huge.json", " " * (5 << 20)))


def test_an_empty_file_knows_nobody(tmp_path: Path) -> None:
    assert AccountFile(written(tmp_path, "a.yml", "")).accounts.holders == {}


@pytest.mark.parametrize("name", ["a.json", "a.yml"])
def test_changes_are_written_for_the_owner_only(tmp_path: Path, name: str) -> None:
    file = AccountFile(written(tmp_path, name, FORMATS[name]))
    file.put(Account(access_key="newcomer", secret_key="newsecret", admin=False), 1000)
    file.put(Account(access_key="alicekey", secret_key="changed1", default_topic_perm="PUB"), 2000)
    assert file.remove("rootkey1", 3000)
    assert not file.remove("rootkey1", 4000)
    again = AccountFile(file.path)
    alice, new = again.listed
    assert (new.access_key, new.secret_key) == ("newcomer", "newsecret")
    assert (alice.secret_key, alice.topic_perms) == ("changed1", ["orders=PUB|SUB"])
    assert (again.version.counter, again.version.timestamp) == (3, 3000)
    assert file.path.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_toml_is_only_read(tmp_path: Path) -> None:
    file = AccountFile(written(tmp_path, "a.toml", AS_TOML))
    with pytest.raises(InvalidInput, match="TOML"):
        file.remove("alicekey", 1)
    assert file.path.read_text() == AS_TOML
    assert set(file.accounts.holders) == {"rootkey1", "alicekey"}


def test_a_change_that_cannot_be_is_not_written(tmp_path: Path) -> None:
    file = AccountFile(written(tmp_path, "a.yml", AS_YAML))
    with pytest.raises(InvalidInput):
        file.put(Account(access_key="short", secret_key="x"), 1)
    with pytest.raises(InvalidInput):
        file.set_white(["not an address"], 1)
    assert file.path.read_text() == AS_YAML


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    file = AccountFile(written(tmp_path, "a.yml", AS_YAML))
    assert "alicesecret" not in repr(file.listed) + repr(file.accounts)


async def ask_as(
    connected: Client, user: str, code: int, fields: dict[str, str], secret: str = ""
) -> Any:
    signed = sign(fields, b"", user, secret or ACCOUNTS[user])
    return await connected.ask(code, signed)


async def may_send(connected: Client, user: str, secret: str) -> bool:
    code, fields, body = send("orders")
    return (await connected.ask(code, sign(fields, body, user, secret), body)).code == 0


async def test_a_changed_file_counts_soon_and_a_broken_one_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, "plain_acl.yml", ACCESS_FILE)
    async with (
        running(acl_enable=True, acl_file=str(path)) as (broker, address),
        client(address) as connected,
    ):
        assert await may_send(connected, "rootkey1", "rootsecret")
        gate = broker.state.gate
        assert gate is not None
        before = gate.accounts
        path.write_text(ACCESS_FILE.replace("rootsecret", "othersecret"))
        await until(lambda: gate.accounts is not before, "the new file")
        assert not await may_send(connected, "rootkey1", "rootsecret")
        assert await may_send(connected, "rootkey1", "othersecret")
        path.write_text("accounts: [")
        await until(lambda: "not well-formed" in caplog.text, "the complaint")
        assert await may_send(connected, "rootkey1", "othersecret")
        path.unlink()
        await until(lambda: "No such file" in caplog.text, "the complaint")
        assert await may_send(connected, "rootkey1", "othersecret")


async def test_admins_change_accounts_by_requests(tmp_path: Path) -> None:
    path = written(tmp_path, "plain_acl.yml", ACCESS_FILE)
    async with (
        running(acl_enable=True, acl_file=str(path)) as (_, address),
        client(address) as connected,
    ):
        new = {"accessKey": "newcomer", "secretKey": "newsecret", "admin": "false"}
        new |= {"topicPerms": "orders=PUB,other=SUB", "defaultGroupPerm": "SUB"}
        assert not await may_send(connected, "newcomer", "newsecret")
        assert (await ask_as(connected, "rootkey1", 50, new)).code == 0
        assert await may_send(connected, "newcomer", "newsecret")
        listed = json.loads((await ask_as(connected, "rootkey1", 54, {})).body)
        assert listed["globalWhiteAddrs"] == ["10.10.103.*", "192.168.0.1-9"]
        assert listed["plainAccessConfigs"][-1] == {
            "accessKey": "newcomer",
            "secretKey": "newsecret",
            "admin": False,
            "defaultGroupPerm": "SUB",
            "topicPerms": ["orders=PUB", "other=SUB"],
        }
        version = (await ask_as(connected, "rootkey1", 52, {})).ext
        assert json.loads(version["version"])["counter"] == 1
        assert version["brokerName"] == "broker-a"
        assert (await ask_as(connected, "rootkey1", 51, {"accessKey": "newcomer"})).code == 0
        assert not await may_send(connected, "newcomer", "newsecret")
        again = await ask_as(connected, "rootkey1", 51, {"accessKey": "newcomer"})
        assert (again.code, again.remark) == (
            210,
            "The accessKey[newcomer] corresponding to accessConfig has been deleted failed.",
        )
        short = await ask_as(connected, "rootkey1", 50, {"accessKey": "x", "secretKey": "hush"})
        assert short.code == 209
        assert "hush" not in short.remark
        white = {"globalWhiteAddrs": "127.0.0.1,10.0.0.*", "aclFileFullPath": ""}
        assert (await ask_as(connected, "rootkey1", 53, white)).code == 0
        assert await may_send(connected, "nobody at all", "x")


async def test_a_broker_without_accounts_says_so() -> None:
    async with running() as (_, address), client(address) as connected:
        for code in (50, 51, 52, 53, 54):
            fields = {"accessKey": "a", "globalWhiteAddrs": "", "aclFileFullPath": ""}
            answer = await connected.ask(code, fields)
            assert answer.code in {1, 209, 210, 211}
            assert "aclFile" in (answer.remark or "")


async def test_a_broker_does_not_start_with_a_file_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="needs aclFile"):
        async with running(acl_enable=True):
            pass
    with pytest.raises(InvalidInput, match="No such file"):
        async with running(acl_enable=True, acl_file=str(tmp_path / "missing.yml")):
            pass
