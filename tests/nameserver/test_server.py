"""The name server as its peers see it: over real sockets, in raw frames."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest

from pocketmq.errors import ListenFailed, StoreCorrupt, StoreError
from pocketmq.nameserver import NameServer, NameServerConfig
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from tests.loops import leap, leaping, until
from tests.nameserver.wire import LIMIT, Peer, broker_fields, running


async def test_a_broker_registers_and_clients_find_its_topics() -> None:
    async with running() as server:
        broker, client = await Peer.to(server), await Peer.to(server)
        assert (await broker.register("b", 0, "b:1", "t", "u")).code == 0
        found = await client.ask(105, {"topic": "t"})
        assert found.code == 0
        assert json.loads(found.body)["brokerDatas"] == [
            {
                "brokerAddrs": {"0": "b:1"},
                "brokerName": "b",
                "cluster": "c",
                "enableActingMaster": False,
            }
        ]
        missing = await client.ask(105, {"topic": "none"})
        assert missing.code == 17
        assert missing.remark == "No topic route info in name server for the topic: none"
        await broker.close()
        await client.close()


@pytest.mark.parametrize("serialize", [0, 1])
async def test_answers_come_in_the_serialisation_of_the_question(serialize: int) -> None:
    async with running() as server:
        peer = await Peer.to(server)
        reply = await peer.ask(106, serialize=serialize)
        assert (reply.code, reply.serialize) == (0, serialize)
        assert reply.body == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
        await peer.close()


async def test_many_questions_of_one_read_are_answered_in_order_and_oneway_ones_not() -> None:
    async with running() as server:
        peer = await Peer.to(server)
        peer.send(103, broker_fields("b", 0, "b:1"), oneway=True)
        for _ in range(300):
            peer.send(106)
        opaques: list[int] = []
        while len(opaques) < 300:
            data = await asyncio.wait_for(peer.reader.read(1 << 16), 10)
            for frame in peer.frames.feed(data):
                reply = read_command(frame)
                opaques.append(reply.opaque)
                assert b'"b:1"' in reply.body
        assert opaques == list(range(2, 302))
        await peer.close()


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_lost_connection_takes_its_brokers_and_their_routes_at_once(how: str) -> None:
    async with running() as server:
        broker, other, client = [await Peer.to(server) for _ in range(3)]
        await broker.register("b", 0, "b:1", "t", "u")
        await other.register("d", 0, "d:1", "t", "v")
        if how == "close":
            await broker.close()
        else:
            broker.writer.transport.abort()
        while (await client.ask(105, {"topic": "u"})).code != 17:
            pass
        left = await client.ask(105, {"topic": "t"})
        assert [each["brokerName"] for each in json.loads(left.body)["queueDatas"]] == ["d"]
        await other.close()
        await client.close()


async def test_a_broker_that_comes_back_on_a_new_connection_survives_the_end_of_the_old() -> None:
    async with running() as server:
        old, new, client = [await Peer.to(server) for _ in range(3)]
        await old.register("b", 0, "b:1", "t", "u")
        await new.register("b", 0, "b:1", "t", "u")
        await old.close()
        for _ in range(20):
            assert (await client.ask(105, {"topic": "t"})).code == 0
        await new.close()
        await client.close()


@leaping
async def test_a_broker_silent_for_the_time_it_named_is_forgotten_and_hung_up_on() -> None:
    async with running() as server:
        broker, lively, client = [await Peer.to(server) for _ in range(3)]
        await lively.register("d", 0, "d:1", "t", "v")
        # Its deadline is earlier than the one the timer is set to.
        await broker.register("b", 0, "b:1", "t", "u", heartbeatTimeoutMillis="10000")
        await leap(9)
        assert (await client.ask(105, {"topic": "u"})).code == 0
        await leap(2)
        assert await broker.hung_up()
        assert (await client.ask(105, {"topic": "u"})).code == 17
        assert (await client.ask(105, {"topic": "v"})).code == 0
        for peer in (broker, lively, client):
            await peer.close()


@leaping
async def test_120_seconds_without_registering_are_silence_whatever_else_is_asked() -> None:
    async with running() as server:
        broker, client = await Peer.to(server), await Peer.to(server)
        await broker.register("b", 0, "b:1", "t", "u")
        for seconds in (100, 19):
            await leap(seconds)
            assert (await broker.ask(105, {"topic": "t"})).code == 0
            assert (await client.ask(105, {"topic": "t"})).code == 0
        await leap(2)
        assert await broker.hung_up()
        assert (await client.ask(105, {"topic": "t"})).code == 17
        await broker.close()
        await client.close()


@leaping
async def test_heartbeats_keep_a_broker() -> None:
    async with running() as server:
        broker = await Peer.to(server)
        await broker.register("b", 0, "b:1", "t", "u", heartbeatTimeoutMillis="10000")
        for _ in range(3):
            await leap(8)
            assert (await broker.ask(904, broker_fields("b", 0, "b:1"))).code == 0
        assert (await broker.ask(105, {"topic": "t"})).code == 0
        await leap(11)
        assert await broker.hung_up()
        await broker.close()


@leaping
async def test_an_idle_connection_is_closed_and_its_broker_forgotten() -> None:
    async with running(NameServerConfig(server_channel_max_idle_time_seconds=60)) as server:
        broker = await Peer.to(server)
        await broker.register("b", 0, "b:1", "t", "u")
        await leap(61)
        assert await broker.hung_up()
        await broker.close()
        client = await Peer.to(server)
        while (await client.ask(105, {"topic": "t"})).code != 17:
            pass
        await client.close()


async def test_brokers_are_told_when_another_has_the_lowest_id() -> None:
    async with running(NameServerConfig(notify_min_broker_id_changed=True)) as server:
        heard: list[tuple[int, bool, dict[str, str]]] = []

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            frames = FrameReader(LIMIT)
            while data := await reader.read(1 << 16):
                for frame in frames.feed(data):
                    command = read_command(frame)
                    heard.append((command.code, command.is_oneway, command.ext))
            writer.close()

        listening = await asyncio.start_server(listen, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        slave, master = await Peer.to(server), await Peer.to(server)
        address = f"127.0.0.1:{port}"
        await slave.register("b", 1, address, "t", "u", enableActingMaster="true")
        await master.register("b", 0, "127.0.0.1:1", "t", "u", enableActingMaster="true")
        await until(lambda: len(heard) == 1, "news of the master")
        await master.close()
        await until(lambda: len(heard) == 2, "news of its end")
        assert heard == [
            (
                905,
                True,
                {"minBrokerId": "0", "minBrokerAddr": "127.0.0.1:1", "haBrokerAddr": "h:1"},
            ),
            (
                905,
                True,
                {
                    "minBrokerId": "1",
                    "minBrokerAddr": address,
                    "offlineBrokerAddr": "127.0.0.1:1",
                },
            ),
        ]
        await slave.close()
        listening.close()


async def test_a_broker_that_cannot_be_told_costs_nothing() -> None:
    config = NameServerConfig(notify_min_broker_id_changed=True)
    async with running(config) as server:
        peer = await Peer.to(server)
        await peer.register("b", 2, "nowhere", "t", "u")
        await peer.register("b", 1, "127.0.0.1:1", "t", "u")
        await peer.register("b", 0, "127.0.0.1:2", "t", "u")
        assert (await peer.ask(106)).code == 0
        await peer.close()


async def test_several_name_servers_know_nothing_of_each_other() -> None:
    async with running() as one, running() as two:
        to_one, to_two = await Peer.to(one), await Peer.to(two)
        await to_one.register("b", 0, "b:1", "t", "u")
        await to_two.register("b", 0, "b:1", "t", "u")
        await to_two.register("d", 0, "d:1", "t", "v")
        await one.stop()
        assert await to_one.hung_up()
        found = json.loads((await to_two.ask(105, {"topic": "t"})).body)
        assert [each["brokerName"] for each in found["brokerDatas"]] == ["b", "d"]
        await to_one.close()
        await to_two.close()


def test_values_and_updated_settings_outlive_the_name_server_and_routes_do_not(
    tmp_path: Path,
) -> None:
    data = tmp_path / "made" / "here"

    async def first() -> None:
        async with running(data=data) as server:
            peer = await Peer.to(server)
            await peer.register("b", 0, "b:1", "t", "u")
            value = {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "b:4"}
            assert (await peer.ask(100, value)).code == 0
            assert (await peer.ask(318, body=b"orderMessageEnable=true\n")).code == 0
            await peer.close()

    async def second() -> None:
        async with running(NameServerConfig(order_message_enable=False), data) as server:
            peer = await Peer.to(server)
            assert (await peer.ask(105, {"topic": "t"})).code == 17
            registered = await peer.register("b", 0, "b:1", "t", "u")
            assert registered.body == b'{"table":{"t":"b:4"}}'
            route = json.loads((await peer.ask(105, {"topic": "t"})).body)
            assert route["orderTopicConf"] == "b:4"
            shown = (await peer.ask(319)).body.decode().splitlines()
            assert f"kvConfigPath={data / 'kvConfig.json'}" in shown
            assert server.address is not None
            assert f"listenPort={server.address.port}" in shown
            await peer.close()

    asyncio.run(first())
    assert json.loads((data / "kvConfig.json").read_bytes()) == {
        "configTable": {"ORDER_TOPIC_CONFIG": {"t": "b:4"}}
    }
    asyncio.run(second())


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("kvConfig.json", b'{"configTable":'),
        ("namesrv.properties", b"\xff"),
    ],
)
def test_a_file_that_cannot_be_understood_stops_the_start(
    tmp_path: Path, file: str, content: bytes
) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(StoreCorrupt, match=file):
        asyncio.run(NameServer(data=tmp_path).start("127.0.0.1", 0))
    assert (tmp_path / file).read_bytes() == content


async def test_a_kept_setting_that_is_not_allowed_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = "orderMessageEnable=perhaps\nwaitSecondsForService=-1\nenableTopicList=false\n"
    (tmp_path / "namesrv.properties").write_text(content)
    async with running(data=tmp_path) as server:
        peer = await Peer.to(server)
        shown = (await peer.ask(319)).body.splitlines()
        await peer.close()
    assert {b"orderMessageEnable=false", b"waitSecondsForService=45"} <= set(shown)
    assert b"enableTopicList=false" in shown
    assert (
        "ignoring invalid saved value of name server setting waitSecondsForService" in caplog.text
    )


def test_a_place_for_files_that_is_none_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot make"):
        asyncio.run(NameServer(data=tmp_path / "file").start("127.0.0.1", 0))


async def test_a_port_that_is_taken_is_told_and_another_can_be_tried() -> None:
    async with running() as taken:
        assert taken.address is not None
        server = NameServer()
        with pytest.raises(ListenFailed):
            await server.start("127.0.0.1", taken.address.port)
        assert (await server.start("127.0.0.1", 0)).port != taken.address.port
        await server.stop()
        await server.stop()


async def test_garbage_costs_the_connection_it_came_on() -> None:
    async with running() as server:
        bad, good = await Peer.to(server), await Peer.to(server)
        bad.writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        with contextlib.suppress(ConnectionResetError):
            assert await bad.hung_up()
        assert (await good.ask(106)).code == 0
        bad.writer.transport.abort()
        await good.close()


async def test_two_brokers_of_one_name_are_told_about(caplog: pytest.LogCaptureFixture) -> None:
    """As in Java, if asked for, the later one is found; the log names both."""
    async with running(NameServerConfig(broker_take_over_enable=True)) as server:
        one, other = await Peer.to(server), await Peer.to(server)
        await one.register("b", 0, "127.0.0.1:1", "T", "U")
        await one.register("b", 0, "127.0.0.1:1", "T", "U")
        assert "two brokers share" not in caplog.text
        await other.register("b", 0, "127.0.0.1:2", "T", "U")
        assert (
            "two brokers share name=b id=0: 127.0.0.1:1 and 127.0.0.1:2; clients reach only one of "
            "them, give each its own brokerName" in caplog.messages
        )
        await one.close()
        await other.close()
