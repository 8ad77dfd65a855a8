"""A broker from start to stop: what outlives it, and what it says when it cannot start."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import InvalidInput, ListenFailed, StoreInUse
from pocketmq.net import Address
from pocketmq.protocol.batch import BatchEntry, encode_batch
from tests.broker.background import Caller
from tests.broker.running import client, pull_fields, records, running, send_fields
from tests.net.peers import LOOPBACK
from tests.ports import free_port

PULL, QUERY, UPDATE_CONFIG, GET_CONFIG, RUNTIME, VIEW, SEND, QUEUE = (
    11,
    12,
    25,
    26,
    28,
    33,
    310,
    321,
)


def here(**settings: Any) -> BrokerConfig:
    standard: dict[str, Any] = {"listen_port": 0, "bind_address": LOOPBACK}
    return BrokerConfig(**standard | settings)


# What outlives a broker


async def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, address), client(address) as peer:
        ids = []
        for number in range(5):
            fields = send_fields("Kept", f"KEYS\1k{number}\2TAGS\1t\2", d="3", e="1")
            ids.append((await peer.ask(SEND, fields, b"%d" % number)).ext["msgId"])
        await peer.ask(200, {}, b'{"groupName":"kept","retryMaxTimes":3}')
        offset = {"consumerGroup": "kept", "topic": "Kept", "queueId": "1"}
        await peer.ask(15, offset | {"commitOffset": "4"})
    async with running(tmp_path) as (_, address), client(address) as peer:
        pulled = await peer.ask(PULL, pull_fields("Kept", queue_id=1, sysFlag="4"))
        assert [record.stored_body for record in records(pulled)] == [b"0", b"1", b"2", b"3", b"4"]
        assert (await peer.ask(14, offset)).ext["offset"] == "4"
        assert json.loads((await peer.ask(352, {"group": "kept"})).body)["retryMaxTimes"] == 3
        assert (await peer.ask(SEND, send_fields("Kept", e="3"), b"x")).code == 29  # 3 queues still
        assert (await peer.ask(SEND, send_fields("Kept", e="1"), b"5")).ext["queueOffset"] == "5"
        viewed = await peer.ask(VIEW, {"offset": str(int(ids[2][16:], 16))})
        assert [record.stored_body for record in records(viewed)] == [b"2"]
        key = {"topic": "Kept", "key": "k3", "maxNum": "9", "beginTimestamp": "0"}
        found = await peer.ask(QUERY, key | {"endTimestamp": str(2**63 - 1)})
        assert [record.stored_body for record in records(found)] == [b"3"]


async def test_a_broker_in_memory_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running() as (_, address), client(address) as peer:
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - its async twin would be no better


CHILD = """
import asyncio, sys
from pathlib import Path
from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig

async def main():
    patient = {"broker_fast_failure_enable": False}  # also if this process gets no processor
    config = BrokerConfig(listen_port=0, bind_address="127.0.0.1", **patient)
    address = await Broker(config, Path(sys.argv[1])).start()
    print(address.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    """Killed in the middle of many sends; then everything that was answered is there."""
    acknowledged: list[bytes] = []
    for life in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        port = int(child.stdout.readline())
        caller = Caller(Address(LOOPBACK, port))
        if life:
            found: list[bytes] = []
            while True:
                fields = pull_fields("T", len(found), sysFlag="4", maxMsgBytes="8000000")
                pulled = caller.ask(PULL, fields | {"maxMsgNums": "1000"})
                if pulled.code:
                    break
                found += [record.stored_body for record in records(pulled)]
            assert found[: len(acknowledged)] == acknowledged
        else:
            numbers = {}
            for number in range(2000):
                body = b"%d" % number
                numbers[caller.post(SEND, send_fields("T"), body)] = body
            with suppress(AssertionError, ConnectionError):
                while True:
                    answer = caller.receive()
                    assert answer.code == 0
                    acknowledged.append(numbers[answer.opaque])
                    if len(acknowledged) == 300:
                        child.send_signal(signal.SIGKILL)
            assert len(acknowledged) >= 300
        caller.close()
        child.kill()
        child.wait(20)
        child.stdout.close()


# Starting


async def test_a_port_that_is_taken_is_said_so_and_the_store_is_left_alone(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        broker = Broker(here(listen_port=taken.getsockname()[1]), tmp_path)
        with pytest.raises(ListenFailed):
            await broker.start()
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - its async twin would be no better


async def test_a_port_that_is_only_preferred_may_be_in_use(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever looked beforehand could not know: another may bind it before the broker does."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        broker = Broker(here(listen_port=port), any_port=True)
        address = await broker.start()
        await broker.stop()
    assert address.port not in (0, port)
    assert f"port {port} is in use; broker-a uses any free port" in caplog.text
    port = free_port()
    broker = Broker(here(listen_port=port), any_port=True)
    assert (await broker.start()).port == port
    await broker.stop()


async def test_a_store_that_is_in_use_is_said_so_and_the_port_is_free_again(tmp_path: Path) -> None:
    async with running(tmp_path):
        port = free_port()
        with pytest.raises(StoreInUse):
            await Broker(here(listen_port=port), tmp_path).start()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((LOOPBACK, port))


async def test_clients_of_the_fast_port_are_served_too() -> None:
    port = free_port()  # two below any free one another server may listen
    async with running(listen_port=port, fast_listen_enable=True) as (_, (host, port)):
        fast = client(Address(host, port - 2))
        async with fast as peer:
            assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0


async def test_the_advertised_address_may_differ_from_the_one_listened_on() -> None:
    settings: dict[str, Any] = {"broker_ip1": "192.0.2.7", "advertised_port": 12345}
    broker = Broker(here(**settings))
    assert await broker.start() == Address("192.0.2.7", 12345)
    bound = broker.bound
    assert bound is not None
    async with client(bound) as peer:
        answer = await peer.ask(SEND, send_fields("T"), b"x")
        assert answer.ext["msgId"].startswith("C000020700003039")
    await broker.stop()


async def test_a_name_is_looked_up_for_message_ids() -> None:
    broker = Broker(here(broker_ip1="localhost"))
    address = await broker.start()
    assert address.host == "localhost"
    assert broker.bound is not None
    async with client(broker.bound) as peer:
        answer = await peer.ask(SEND, send_fields("T"), b"x")
        assert answer.ext["msgId"][:8] in ("7F000001", "00000000")
    await broker.stop()
    with pytest.raises(InvalidInput):
        await Broker(here(broker_ip1="no.such.host.invalid")).start()


# Stopping


async def test_stopping_twice_and_before_the_start_is_no_mistake() -> None:
    broker = Broker(here())
    await broker.stop()
    await broker.start()
    await broker.stop()
    await broker.stop()


async def test_what_is_stored_is_answered_before_the_end(tmp_path: Path) -> None:
    answered = 1
    async with running(tmp_path) as (broker, address), client(address) as peer:
        numbers = [peer.post(SEND, send_fields("T"), b"x") for _ in range(500)]
        await peer.answer(numbers[0])
        stopping = asyncio.create_task(broker.stop())
        with suppress(AssertionError):  # the broker hangs up
            for number in numbers[1:]:
                assert (await peer.answer(number)).code == 0
                answered += 1
        await peer.close()
        await stopping
    async with running(tmp_path) as (_, address), client(address) as peer:
        stored = await peer.ask(30, {"topic": "T", "queueId": "0"})
        assert stored.ext["offset"] == str(answered)


async def test_a_stopped_broker_accepts_no_connections() -> None:
    async with running() as (broker, address):
        await broker.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)


# Settings and figures


@pytest.mark.parametrize(
    "properties",
    [
        {"flushDiskType": "MAYBE"},
        {"listenPort": "99999"},
        {"listenPort": "x"},
        {"brokerId": "1"},
        {"brokerName": ""},
        {"brokerClusterName": ""},
        {"longPollingEnable": "maybe"},
        {"maxMessageSize": "0"},
        {"brokerPermission": "8"},
        {"deleteWhen": "25"},
    ],
)
def test_settings_that_cannot_be_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        BrokerConfig.from_properties(properties)


def test_settings_are_read_by_rocketmqs_keys_and_unknown_ones_passed_over() -> None:
    config = BrokerConfig.from_properties(
        {
            "brokerIP1": "10.0.0.1",
            "brokerName": "b",
            "deleteWhen": "04;16",
            "flushDiskType": "SYNC_FLUSH",
            "listenPort": " 10911 ",
            "longPollingEnable": "FALSE",
            "mappedFileSizeConsumeQueue": "6000000",
        }
    )
    assert (config.broker_ip1, config.broker_name, config.listen_port) == ("10.0.0.1", "b", 10911)
    assert (config.sync_flush, config.long_polling_enable) == (True, False)
    assert config.delete_hours == (4, 16)
    assert BrokerConfig.from_properties(config.to_properties()) == config


async def test_settings_change_while_the_broker_runs() -> None:
    async with running() as (_, address), client(address) as peer:
        body = b"maxMessageSize=10\nno.such.key=1\nlistenPort=0\n"
        assert (await peer.ask(UPDATE_CONFIG, {}, body)).code == 0
        answer = await peer.ask(GET_CONFIG)
        assert json.loads(answer.ext["version"]).keys() == {"counter", "stateVersion", "timestamp"}
        shown = dict(line.split("=", 1) for line in answer.body.decode().splitlines())
        assert shown["maxMessageSize"] == "10"
        assert (await peer.ask(SEND, send_fields("T"), b"x" * 11)).code == 13
        assert (await peer.ask(SEND, send_fields("T"), b"x" * 10)).code == 0
        refused = await peer.ask(UPDATE_CONFIG, {}, b"configBlackList=x\n")
        assert (refused.code, refused.remark) == (16, "Can not update config in black list.")
        assert (await peer.ask(UPDATE_CONFIG)).code == 0


async def test_settings_that_cannot_be_change_nothing() -> None:
    """Java says success to all of them and keeps the old value; nobody knows then."""
    async with running() as (_, address), client(address) as peer:
        for body, reason in (
            (
                b"maxMessageSize=0\nbrokerPermission=4",
                "invalid setting maxMessageSize=0: must be a number from 1 to 15728640",
            ),
            (
                b"shortPollingTimeMills=x",
                "shortPollingTimeMills must be a number from 1 to 600000, not 'x'",
            ),
            (
                b"longPollingEnable=perhaps",
                "longPollingEnable must be true or false, not 'perhaps'",
            ),
            (b"listenPort=1", "listenPort can only be set at startup"),
        ):
            refused = await peer.ask(UPDATE_CONFIG, {}, body)
            assert (refused.code, refused.remark) == (29, reason)
        shown = (await peer.ask(GET_CONFIG)).body.splitlines()
        assert {b"maxMessageSize=4194304", b"brokerPermission=6", b"listenPort=0"} <= set(shown)


JAVA_FIGURES = {
    "EndTransactionQueueSize", "EndTransactionThreadPoolQueueCapacity", "bootTimestamp",
    "brokerActive", "brokerVersionDesc", "commitLogDirCapacity", "commitLogDiskRatio",
    "commitLogMaxOffset", "commitLogMinOffset", "consumeQueueDiskRatio", "dispatchBehindBytes",
    "dispatchMaxBuffer", "earliestMessageTimeStamp", "getFoundTps", "getMessageEntireTimeMax",
    "getMissTps", "getTotalTps", "getTransferredTps", "msgGetTotalTodayMorning",
    "msgGetTotalTodayNow", "msgGetTotalYesterdayMorning", "msgPutTotalTodayMorning",
    "msgPutTotalTodayNow", "msgPutTotalYesterdayMorning", "pageCacheLockTimeMills",
    "putLatency99", "putLatency999", "putMessageAverageSize", "putMessageDistributeTime",
    "putMessageEntireTimeMax", "putMessageFailedTimes", "putMessageSizeTotal",
    "putMessageTimesTotal", "putTps", "remainHowManyDataToFlush",
    "remainTransientStoreBufferNumbs", "runtime", "startAcceptSendRequestTimeStamp",
    "timerCongestNum", "timerDequeueTps", "timerEnqueueTps", "timerOffsetBehind",
    "timerReadBehind",
} | {
    f"{pool}ThreadPoolQueue{what}"
    for pool in ("send", "pull", "query", "litePull", "ack")
    for what in ("Size", "Capacity", "HeadWaitTimeMills")
}  # fmt: skip
"""What a Java broker without delayed messages tells of itself (28)."""


async def test_tools_find_the_figures_they_show() -> None:
    """`mqadmin clusterList` of 4.9 fails without some of them."""
    async with running() as (_, address), client(address) as peer:
        await peer.ask(SEND, send_fields("T"), b"x" * 10)
        await peer.ask(PULL, pull_fields("T", sysFlag="4"))
        table = json.loads((await peer.ask(RUNTIME)).body)["table"]
        assert table["brokerVersionDesc"] == "V5_3_3"
        put = table["putMessageTimesTotal"], table["putMessageSizeTotal"]
        assert put == ("1", table["commitLogMaxOffset"])
        assert table.keys() >= JAVA_FIGURES
        for name in ("putTps", "getTransferredTps", "getTransferedTps", "getTotalTps"):
            assert len([float(rate) for rate in table[name].split(" ")]) == 3
        for name in ("sendThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills"):
            assert table[name] == "0"
        assert table["runtime"] == "[ 0 days, 0 hours, 0 minutes, 0 seconds ]"
        assert int(table["commitLogMaxOffset"]) > 100


# Looking at messages


@pytest.mark.parametrize("offset", ["3", "-1", "99999999999", "9223372036854775807"])
async def test_a_place_without_a_message_is_said_to_be_one(offset: str) -> None:
    async with running() as (_, address), client(address) as peer:
        await peer.ask(SEND, send_fields("T"), b"x")
        answer = await peer.ask(VIEW, {"offset": offset})
        assert (answer.code, answer.remark) == (1, f"can not find message by the offset, {offset}")


async def test_messages_are_found_by_key_as_soon_as_they_are_acknowledged() -> None:
    always = {"topic": "T", "beginTimestamp": "0", "endTimestamp": str(2**63 - 1)}
    async with running() as (_, address), client(address) as peer:
        for number in range(70):
            fields = send_fields("T", f"KEYS\1all k{number}\2UNIQ_KEY\1U{number}\2")
            await peer.ask(SEND, fields, b"%d" % number)

        async def query(key: str, count: str, **more: str) -> list[bytes]:
            answer = await peer.ask(QUERY, always | {"key": key, "maxNum": count} | more)
            assert answer.code in (0, 22)
            if answer.code:
                assert answer.remark == "can not find message, maybe time range not correct"
            return [record.stored_body for record in records(answer)]

        assert await query("k69", "9") == [b"69"]
        assert await query("U5", "1", _UNIQUE_KEY_QUERY="true") == [b"5"]
        assert len(await query("all", "1000")) == 64  # as many as Java gives
        assert len(await query("all", "9")) == 9
        assert await query("none", "9") == []
        assert await query("all", "0") == []
        assert await query("all", "9", endTimestamp="1000") == []
        assert await query("all", "9", topic="Other") == []


async def test_a_key_is_found_behind_many_messages_while_others_are_served() -> None:
    """The index catches up in slices; a send that comes meanwhile does not wait for all of them."""
    async with running() as (_, address), client(address) as peer, client(address) as other:
        entry = b"UNIQ_KEY\1%032d\2KEYS\1a b c\2"
        batch = encode_batch([BatchEntry(b"x", entry % number) for number in range(20_000)])
        await peer.ask(320, send_fields("T", m="true"), batch)
        await peer.ask(SEND, send_fields("T", "KEYS\1last\2"), b"found")
        fields = {"topic": "T", "key": "last", "maxNum": "9", "beginTimestamp": "0"}
        number = peer.post(QUERY, fields | {"endTimestamp": str(2**63 - 1)})
        await peer._writer.drain()
        assert (await other.ask(SEND, send_fields("T"), b"x")).code == 0
        answer = await peer.answer(number)
        assert [record.stored_body for record in records(answer)] == [b"found"]


async def test_the_entries_of_a_queue_can_be_looked_at() -> None:
    async with running() as (_, address), client(address) as peer:
        for tag in ("a", "b", "a"):
            await peer.ask(SEND, send_fields("T", f"TAGS\1{tag}\2"), b"x")
        fields = {"topic": "T", "queueId": "0", "index": "1", "count": "5", "consumerGroup": "G"}
        page = json.loads((await peer.ask(QUEUE, fields)).body)
        assert (page["minQueueIndex"], page["maxQueueIndex"]) == (0, 3)
        assert page["filterData"] == "G@T is not online!"
        assert [entry["tagsCode"] for entry in page["queueData"]] == [98, 97]
        assert (await peer.ask(QUEUE, fields | {"topic": "None"})).code == 1
