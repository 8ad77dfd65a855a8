"""The directory of access files beside the broker's own, as 4.9.x has it."""

import json
import shutil
from pathlib import Path

import pytest

from pocketmq.broker.access.account_files import AccountFiles
from pocketmq.errors import InvalidInput
from pocketmq.protocol.requests.access import Account
from tests.access.attempts import ACCESS_FILE
from tests.access.test_account_file import ask_as, may_send
from tests.broker.running import client, running
from tests.loops import until


def accounts(*names: str, white: str = "", secret: str = "topsecret") -> str:
    lines = ["globalWhiteRemoteAddresses:", f"- {white}"] if white else []
    lines.append("accounts:")
    for name in names:
        lines += [f"- accessKey: {name}", f"  secretKey: {secret}", "  defaultTopicPerm: PUB"]
    return "\n".join(lines) + "\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Java's layout: conf/plain_acl.yml and conf/acl."""
    (tmp_path / "acl" / "deep").mkdir(parents=True)
    (tmp_path / "plain_acl.yml").write_text(accounts("own-key", "shared-key", white="10.0.0.1"))
    (tmp_path / "acl" / "b.yml").write_text(accounts("b-key-1", "shared-key", secret="of-file-b"))
    (tmp_path / "acl" / "a.yaml").write_text(accounts("a-key-1", white="10.0.0.2"))
    (tmp_path / "acl" / "deep" / "c.yml").write_text(accounts("c-key-1"))
    (tmp_path / "acl" / "notes.txt").write_text("no accounts")
    (tmp_path / "acl" / ".hidden.yml").write_text(accounts("hidden-key"))
    return tmp_path / "plain_acl.yml"


def test_all_files_count_and_a_key_where_it_comes_first(conf: Path) -> None:
    files = AccountFiles(conf)
    assert [file.path.name for file in files.files] == ["a.yaml", "b.yml", "c.yml", "plain_acl.yml"]
    assert list(files.accounts.holders) == [
        "a-key-1",
        "b-key-1",
        "shared-key",
        "c-key-1",
        "own-key",
    ]
    assert files.accounts.holders["shared-key"].secret == b"of-file-b"
    assert files.white == ["10.0.0.2", "10.0.0.1"]


def test_without_the_directory_there_is_one_file(conf: Path) -> None:
    shutil.rmtree(conf.parent / "acl")
    assert list(AccountFiles(conf).accounts.holders) == ["own-key", "shared-key"]


def test_files_that_come_change_and_go_are_noticed(conf: Path) -> None:
    files, directory = AccountFiles(conf), conf.parent / "acl"
    assert files.reload() == []
    (directory / "new.yml").write_text(accounts("new-key-1"))
    (directory / "b.yml").unlink()
    (directory / "a.yaml").write_text(accounts("another-key"))
    assert {path.name for path in files.reload()} == {"new.yml", "b.yml", "a.yaml"}
    assert list(files.accounts.holders) == [
        "another-key", "c-key-1", "new-key-1", "own-key", "shared-key",
    ]  # fmt: skip
    assert files.accounts.holders["shared-key"].secret == b"topsecret"
    assert files.reload() == []


def test_a_broken_file_is_told_once_and_the_others_count(conf: Path) -> None:
    files, directory = AccountFiles(conf), conf.parent / "acl"
    (directory / "b.yml").write_text("accounts: [")
    (directory / "new.yml").write_text("accounts: [")
    (directory / "deep" / "c.yml").write_text(accounts("c-key-2"))
    with pytest.raises(InvalidInput, match="not well-formed"):
        files.reload()
    assert files.reload() == []
    assert {"b-key-1", "c-key-2"} <= set(files.accounts.holders)
    (directory / "new.yml").write_text(accounts("new-key-1"))
    assert [path.name for path in files.reload()] == ["new.yml"]
    assert "new-key-1" in files.accounts.holders


def test_a_broken_file_at_the_start_is_refused(conf: Path) -> None:
    (conf.parent / "acl" / "b.yml").write_text("accounts: [")
    with pytest.raises(InvalidInput, match=r"b\.yml is not well-formed"):
        AccountFiles(conf)


def test_an_account_is_changed_where_it_is_and_a_new_one_goes_to_the_own_file(conf: Path) -> None:
    files, directory = AccountFiles(conf), conf.parent / "acl"
    files.put(Account(access_key="c-key-1", secret_key="changed-secret"), 1)
    files.put(Account(access_key="fresh-key", secret_key="fresh-secret"), 1)
    assert "changed-secret" in (directory / "deep" / "c.yml").read_text()
    assert "fresh-secret" in conf.read_text()
    assert files.accounts.holders["c-key-1"].secret == b"changed-secret"
    assert files.remove("b-key-1", 2)
    assert not files.remove("b-key-1", 2)
    assert "b-key-1" not in (directory / "b.yml").read_text()
    counters = {Path(path).name: each.counter for path, each in files.versions.items()}
    assert counters == {"a.yaml": 0, "b.yml": 1, "c.yml": 1, "plain_acl.yml": 1}
    assert files.reload() == []  # our own changes are no news


def test_white_addresses_are_changed_in_the_file_that_is_named(conf: Path, tmp_path: Path) -> None:
    files, other = AccountFiles(conf), conf.parent / "acl" / "a.yaml"
    files.set_white(["10.0.0.7"], str(other), 1)
    files.set_white(["10.0.0.8"], "", 1)
    assert files.white == ["10.0.0.7", "10.0.0.8"]
    stranger = tmp_path / "elsewhere.yml"
    stranger.write_text(accounts("strangers"))
    for path in (str(stranger), "/etc/passwd", f"{other.parent}/../../{stranger.name}"):
        with pytest.raises(InvalidInput, match="not one of this broker's access files"):
            files.set_white(["0.0.0.0"], path, 1)
    assert "0.0.0.0" not in stranger.read_text()


async def test_a_broker_lets_in_whom_a_file_in_the_directory_names(tmp_path: Path) -> None:
    path = tmp_path / "plain_acl.yml"
    path.write_text(ACCESS_FILE)
    async with (
        running(acl_enable=True, acl_file=str(path)) as (broker, address),
        client(address) as peer,
    ):
        assert not await may_send(peer, "late-key", "topsecret")
        gate = broker.state.gate
        assert gate is not None
        before = gate.accounts
        (tmp_path / "acl").mkdir()
        (tmp_path / "acl" / "late.yml").write_text(accounts("late-key"))
        await until(lambda: gate.accounts is not before, "the new file")
        assert await may_send(peer, "late-key", "topsecret")
        listed = json.loads((await ask_as(peer, "rootkey1", 54, {})).body)
        assert "late-key" in {each["accessKey"] for each in listed["plainAccessConfigs"]}
        versions = json.loads((await ask_as(peer, "rootkey1", 52, {})).ext["allAclFileVersion"])
        assert set(versions) == {str(tmp_path / "acl" / "late.yml"), str(path)}
        before = gate.accounts
        (tmp_path / "acl" / "late.yml").unlink()
        await until(lambda: gate.accounts is not before, "the file's end")
        assert not await may_send(peer, "late-key", "topsecret")
