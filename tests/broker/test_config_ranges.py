"""Whatever number a setting is given: it is refused, or the broker starts again and serves."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import CHANGEABLE, BrokerConfig
from pocketmq.broker.config_ranges import RANGES, USUAL
from pocketmq.broker.settings import keep_settings
from pocketmq.errors import InvalidInput
from pocketmq.nameserver import NameServer
from pocketmq.protocol import RequestCode as Code
from tests.broker.running import Client, client, pull_fields, running, send_fields

NUMBERS = sorted(
    field.encode_name for field in msgspec.structs.fields(BrokerConfig) if field.type is int
)
HOSTILE = ["-1", "0", str(2**31), str(2**63), "nan", "", "many", "1e9", "0x10", "٣", "9" * 400]
SERVING = {"brokerPermission", "diskSpaceWarningLevelRatio"}  # at their lowest nobody shall write


@asynccontextmanager
async def registered(data: Path) -> AsyncIterator[Client]:
    """Run a broker that its name server knows, and a client of it."""
    server = NameServer()
    address = await server.start("127.0.0.1", 0)
    config = BrokerConfig(listen_port=0, bind_address="127.0.0.1", broker_ip1="127.0.0.1")
    broker = Broker(config, data, [str(address)])
    try:
        here = await broker.start()
        async with client(address) as asking:
            info = (await asking.ask(Code.GET_BROKER_CLUSTER_INFO)).body
            assert str(here).encode() in info, "the broker is not registered"
        async with client(here) as peer:
            yield peer
    finally:
        await broker.stop()
        await server.stop()


async def check_serves(peer: Client) -> None:
    sent = await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"x")
    assert sent.code == 0, sent.remark
    offset = sent.ext["queueOffset"]
    fields = pull_fields("T", queueId=sent.ext["queueId"], queueOffset=offset, sysFlag="4")
    assert (await peer.ask(Code.PULL_MESSAGE, fields)).code == 0


def bounds(key: str, which: str) -> str:
    low, high = RANGES.get(key, USUAL)
    return str(low if which == "lowest" else high)


@pytest.mark.parametrize("value", [*HOSTILE, "lowest", "highest"])
async def test_a_number_is_refused_or_the_broker_starts_again_and_serves(
    value: str, tmp_path: Path
) -> None:
    async with registered(tmp_path) as peer:
        for key in NUMBERS:
            if key not in CHANGEABLE or key in SERVING:
                continue
            text = bounds(key, value) if value in {"lowest", "highest"} else value
            answer = await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, f"{key}={text}\n".encode())
            if value in {"lowest", "highest"}:
                assert answer.code == 0, answer.remark
            elif answer.code != 0:
                assert key in str(answer.remark)
                assert "a number from" in str(answer.remark)
            else:
                low, high = RANGES.get(key, USUAL)
                assert low <= int(text) <= high
    async with registered(tmp_path) as peer:
        await check_serves(peer)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_file_is_held_to_the_same_ranges(value: str) -> None:
    for key in NUMBERS:
        low, high = RANGES.get(key, USUAL)
        if value.removeprefix("-").isdigit() and value.isascii() and low <= int(value) <= high:
            assert BrokerConfig.from_properties({key: value}).to_properties()[key] == value
            continue
        with pytest.raises(InvalidInput) as caught:
            BrokerConfig.from_properties({key: value})
        told = str(caught.value)
        assert key in told
        assert (f"from {low} to {high}" if low != high else str(low)) in told
        assert len(told) < 300


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("defaultMessageRequestMode", "PUSH"),
        ("flushDiskType", "NEVER"),
        ("msgTraceTopicName", "a b"),
        ("msgTraceTopicName", ""),
        ("deleteWhen", "25"),
    ],
)
def test_texts_that_no_broker_could_work_with_are_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidInput):
        BrokerConfig().updated({key: value})


async def test_what_an_earlier_version_kept_and_is_not_allowed_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as (broker, _):
        keep_settings(broker.state.store, {"defaultTopicQueueNums": "-1", "maxMessageSize": "1000"})
    with caplog.at_level(logging.WARNING):
        async with registered(tmp_path) as peer:
            await check_serves(peer)
            shown = (await peer.ask(Code.GET_BROKER_CONFIG)).body.splitlines()
            assert {b"defaultTopicQueueNums=8", b"maxMessageSize=1000"} <= set(shown)
    assert (
        "ignoring invalid saved value of defaultTopicQueueNums: invalid setting "
        "defaultTopicQueueNums=-1: must be a number from 1 to 65536" in caplog.messages
    )
