"""Settings changed while a broker runs: kept over restarts, unless the start says otherwise."""

import logging
import os
import signal
from pathlib import Path

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.config_text import read_properties
from tests.broker.running import Client, LoopClock, client, running, send_fields
from tests.cluster.raw import RawClient
from tests.server_process import ServerProcess


async def shown(peer: Client, *keys: str) -> list[str]:
    settings = read_properties((await peer.ask(Code.GET_BROKER_CONFIG)).body)
    return [settings[key] for key in keys]


async def test_changes_outlive_a_restart_and_count_from_its_first_moment(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address), client(address) as peer:
        change = b"maxMessageSize=100\nfileReservedTime=5\n"
        assert (await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, change)).code == 0
        assert (await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, b"fileReservedTime=7\n")).code == 0
    async with running(tmp_path) as (broker, address), client(address) as peer:
        assert await shown(peer, "maxMessageSize", "fileReservedTime") == ["100", "7"]
        assert broker.state.store.options.retention == 7 * 3600.0
        assert (await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"x" * 101)).code == 13


async def test_what_is_given_at_the_start_counts_before_what_was_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as (_, address), client(address) as peer:
        change = b"maxMessageSize=100\nfileReservedTime=5\n"
        assert (await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, change)).code == 0
    config = BrokerConfig(listen_port=0, bind_address="127.0.0.1", max_message_size=2000)
    broker = Broker(config, tmp_path, clock=LoopClock(), given=["maxMessageSize"])
    with caplog.at_level(logging.INFO, "pocketmq.broker"):
        await broker.start()
    try:
        now = broker.state.config
        assert (now.max_message_size, now.file_reserved_time) == (2000, 5)
        assert "setting maxMessageSize given at startup overrides" in caplog.text
    finally:
        await broker.stop()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("fileReservedTime=9\nmaxMessageSize=0", "maxMessageSize=0"),
        (
            "fileReservedTime=9\nmaxMessageSize=many",
            "maxMessageSize must be a number from 1 to 15728640, not 'many'",
        ),
        ("fileReservedTime=9\nlistenPort=1", "listenPort can only be set at startup"),
        ("fileReservedTime=9\nauthenticationEnabled=true", "authenticationEnabled can only be set"),
    ],
)
async def test_a_refused_change_is_named_and_neither_counts_nor_is_kept(
    tmp_path: Path, change: str, named: str
) -> None:
    async with running(tmp_path) as (_, address), client(address) as peer:
        answer = await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, change.encode())
        assert answer.code == 29
        assert answer.remark is not None
        assert named in answer.remark
        assert await shown(peer, "fileReservedTime") == ["72"]
    async with running(tmp_path) as (_, address), client(address) as peer:
        assert await shown(peer, "fileReservedTime", "maxMessageSize") == ["72", "4194304"]


async def test_unknown_keys_and_those_of_the_start_are_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as (broker, address), client(address) as peer:
        change = b"haSendHeartbeatInterval=1\nfileReservedTime=9\nlistenPort=0\n"
        assert (await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, change)).code == 0
        assert "ignored unknown settings: haSendHeartbeatInterval" in caplog.text
        kept = broker.state.store.metadata.documents("setting")
        assert kept == [("fileReservedTime", b'"9"')]


@pytest.mark.damaged_store
async def test_a_kept_setting_that_cannot_be_any_more_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as (broker, _):
        documents: dict[str, bytes | None] = {
            "maxMessageSize": b'"-1"',
            "fileReservedTime": b'"6"',
            "listenPort": b'"1"',
            "deleteWhen": b"no JSON",
            "goneSetting": b'"1"',
        }
        broker.state.store.metadata.save_documents("setting", documents)
    async with running(tmp_path) as (_, address), client(address) as peer:
        assert await shown(peer, "fileReservedTime", "maxMessageSize", "deleteWhen") == [
            "6",
            "4194304",
            "04",
        ]
    for key in ("maxMessageSize", "listenPort", "deleteWhen"):
        assert f"ignoring invalid saved value of {key}" in caplog.text


def test_of_the_command_options_win_and_its_file_does_not(tmp_path: Path) -> None:
    """As Java, which writes changes into the file; here even after a kill."""
    file = tmp_path / "broker.conf"
    file.write_text("fileReservedTime=48\nmaxMessageSize=1000\n")
    arguments = ["broker", "-n", "127.0.0.1:1", "--port", "0", "-c", str(file)]
    arguments += ["--data", str(tmp_path / "data"), "--set", "maxMessageSize=2000"]

    def settings(server: ServerProcess, change: bytes = b"") -> list[str]:
        with RawClient(server.brokers["broker-a"]) as peer:
            if change:
                assert peer.call(Code.UPDATE_BROKER_CONFIG, None, change).code == 0
            found = read_properties(peer.call(Code.GET_BROKER_CONFIG).body)
        return [found[key] for key in ("fileReservedTime", "maxMessageSize")]

    with ServerProcess(*arguments) as server:
        assert settings(server) == ["48", "2000"]
        change = b"fileReservedTime=24\nmaxMessageSize=3000\n"
        assert settings(server, change) == ["24", "3000"]
        os.kill(server.process.pid, signal.SIGKILL)
    with ServerProcess(*arguments) as server:
        assert settings(server) == ["24", "2000"]
