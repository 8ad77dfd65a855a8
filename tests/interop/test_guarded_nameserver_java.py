"""Java brokers, which do not sign, and Java's mqadmin, which does, with our guarded name server."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.nameserver import NameServer, NameServerConfig
from pocketmq.protocol.requests.nameserver import GetRouteRequest
from tests.interop import jvm
from tests.ports import free_port
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

ROOT, SECRET = "rootuser", "a-long-secret"


@contextmanager
def nameserver(trusted: str) -> Iterator[str]:
    """Run a guarded name server on a loop of its own; give its address."""
    config = NameServerConfig(
        authentication_enabled=True,
        init_authentication_user=json.dumps({"username": ROOT, "password": SECRET}),
        trusted_broker_addresses=trusted,
    )
    server, loop = NameServer(config), asyncio.new_event_loop()
    address = loop.run_until_complete(server.start("127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield str(address)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def java_broker(jars: jvm.Jars, home: Path, address: str, name: str) -> jvm.Process:
    (home / name).mkdir(parents=True)
    settings = {"brokerName": name, "brokerClusterName": "JavaCluster", "brokerId": 0}
    return jvm.broker(jars, home / name, address, listenPort=free_port(), **settings)


def brokers_of(address: str, topic: str) -> set[str]:
    with WireClient(address) as client:
        body = client.ask(105, GetRouteRequest(topic=topic)).body
    return set(re.findall(r'"brokerName":"([^"]+)"', body.decode()))


def test_a_java_broker_at_a_listed_address_registers_and_serves_and_leaves(
    jars: jvm.Jars, tmp_path: Path
) -> None:
    with nameserver("127.0.0.1") as address:
        with java_broker(jars, tmp_path, address, "listed"):
            jvm.wait_until(lambda: brokers_of(address, "TBW102") == {"listed"}, "the broker")
            with mq.Producer(address, group="shop") as producer:
                producer.send(mq.Message("orders", b"one"))
            jvm.wait_until(lambda: brokers_of(address, "orders") == {"listed"}, "its new topic")
            with mq.PullConsumer(address, group="audit") as consumer:
                consumer.subscribe("orders")
                received = next(iter(consumer))
                assert received.body == b"one"
        jvm.wait_until(lambda: brokers_of(address, "TBW102") == set(), "the broker to be forgotten")


def test_a_java_broker_elsewhere_is_refused(
    jars: jvm.Jars, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refused = "REGISTER_BROKER (103) was refused with code 16: REGISTER_BROKER needs the signature"
    with nameserver("10.0.0.1") as address, java_broker(jars, tmp_path, address, "unlisted"):
        jvm.wait_until(lambda: refused in caplog.text, "the refusal")
        assert brokers_of(address, "TBW102") == set()


def test_mqadmin_changes_the_name_server_with_its_users_credentials(
    jars: jvm.Jars, tmp_path: Path
) -> None:
    with nameserver("127.0.0.1") as address, java_broker(jars, tmp_path, address, "listed"):
        jvm.wait_until(lambda: brokers_of(address, "TBW102") == {"listed"}, "the broker")
        nobody, root = tmp_path / "nobody", tmp_path / "root"
        for home in (nobody, root):
            (home / "conf").mkdir(parents=True)
        (root / "conf" / "tools.yml").write_text(f"accessKey: {ROOT}\nsecretKey: {SECRET}\n")
        commands = {
            f"wipeWritePerm -n {address} -b listed": "wipe write perm of broker[listed]",
            f"updateKvConfig -n {address} -s space -k key -v value": "success",
            f"updateNamesrvConfig -n {address} -k orderMessageEnable -v true": "success",
        }
        with jvm.Admin(jars, nobody) as admin:
            for command in commands:
                said = admin.run(command)
                assert "CODE: 16" in said, said
        with jvm.Admin(jars, root) as admin:
            for command, expected in commands.items():
                said = admin.run(command)
                assert expected in said, said
                assert "CODE: 16" not in said
