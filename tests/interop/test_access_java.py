"""Access control and TLS with Java: the same answers from Java's broker, Java clients on ours."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pocketmq.net import Address
from tests.access.attempts import (
    ACCESS_FILE,
    ACCOUNT_ATTEMPTS,
    ACCOUNTS,
    SAME,
    USER_ATTEMPTS,
    USER_SETUP,
    USERS,
    Answer,
    Attempt,
    Request,
    carried_out,
    create_topic,
    sign,
)
from tests.broker.running import client
from tests.interop import jvm
from tests.interop.jvm import Jars
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

ROOT = json.dumps({"username": "root", "password": USERS["root"]})
PROVIDERS = {
    f"{what}{part}": f"org.apache.rocketmq.auth.{what}.provider.{prefix}{what.title()}{part}"
    for what in ("authentication", "authorization")
    for part, prefix in (("Provider", "Default"), ("MetadataProvider", "Local"))
}


@contextmanager
def java_broker(jars: Jars, home: Path, **settings: object) -> Iterator[Address]:
    """Run a Java broker that no name server knows."""
    port = jvm.free_port()
    settings |= {"listenPort": port, "brokerName": "broker-a", "enableControllerMode": "false"}
    with jvm.broker(jars, home, "127.0.0.1:1", **settings) as process:
        jvm.wait_until(lambda: _listens(port), "\n".join(process.lines))
        yield Address("127.0.0.1", port)


def _listens(port: int) -> bool:
    try:
        WireClient(f"127.0.0.1:{port}").__exit__(None, None, None)
    except OSError:
        return False
    return True


async def answers_of(
    address: Address, setup: list[Request], attempts: list[Attempt], secrets: dict[str, str]
) -> dict[str, Answer]:
    boss = next(iter(secrets))
    async with client(address) as connected:
        for code, fields, body in setup:
            answer = await connected.ask(code, sign(fields, body, boss, secrets[boss]), body)
            assert answer.code == 0, answer.remark
        return await carried_out(connected, attempts, secrets)


def differing(found: dict[str, Answer], attempts: list[Attempt]) -> dict[str, Answer]:
    """Give what Java answers otherwise than written down; its stack frames do not count."""
    differences = {}
    for attempt in attempts:
        wanted = attempt.answer if attempt.java == SAME else attempt.java
        code, remark = found[attempt.name]
        if code == 1 and remark is not None:
            remark = remark.partition(", org.apache")[0]
        if (code, remark) != wanted and not (attempt.java != SAME and code == wanted[0]):
            differences[attempt.name] = (code, remark)
    return differences


def test_javas_broker_gives_the_answers_written_down(jars: Jars, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    if jars.is_5:
        settings: dict[str, object] = {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "initAuthenticationUser": ROOT,
            **PROVIDERS,
        }
        setup, attempts, secrets = USER_SETUP, USER_ATTEMPTS, USERS
    else:
        (home / "conf" / "plain_acl.yml").write_text(ACCESS_FILE)
        settings = {"aclEnable": "true"}
        topics = ("orders", "inbox", "outbox", "other")
        setup, attempts, secrets = [*map(create_topic, topics)], ACCOUNT_ATTEMPTS, ACCOUNTS
    with java_broker(jars, home, **settings) as address:
        found = asyncio.run(answers_of(address, setup, attempts, secrets))
    assert differing(found, attempts) == {}
