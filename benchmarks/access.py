"""What access control costs: the check of one send, and its share of a send to a running broker."""

import asyncio
import base64
import hmac
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pocketmq.broker.access.accounts import read_accounts
from pocketmq.broker.access.gate import BrokerGate
from pocketmq.broker.access.settings import AccessSettings
from pocketmq.broker.access.users import AclTable, UserTable
from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.net import Address
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.requests import access, sending
from pocketmq.protocol.signature import SigningUser, sign
from pocketmq.store import QueueIndex

COUNT = 2000
ROUNDS = 9
NAME, SECRET, BODY = "somebody", "a long secret", b"x" * 100


class Here:
    remote_address = "127.0.0.1:5"


class NoRecords:
    def record_at(self, _: int) -> bytes | None:
        return None

    def queue(self, _: str, __: int) -> QueueIndex | None:
        return None


def send_fields() -> dict[str, str]:
    header = sending.SendRequestV2(
        producer_group="producers",
        topic="orders",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties="UNIQ_KEY\1AC11000154F418B4AAC26D5E0B7E0000\2WAIT\1true\2",
        reconsume_times=0,
        unit_mode=False,
        batch=False,
    )
    return header.to_ext()


def as_java() -> bytes:
    """Make a send as Java's clients sign it."""
    fields = send_fields() | {"AccessKey": NAME}
    content = "".join(fields[key] for key in sorted(fields)).encode() + BODY
    digest = hmac.digest(SECRET.encode(), content, "sha1")
    fields["Signature"] = base64.b64encode(digest).decode()
    return Command.request(310, 1, fields, BODY).encode()


def bound() -> bytes:
    """Make a send as our clients sign it, bound to its code."""
    fields = send_fields()
    sign(SigningUser(NAME, SECRET.encode()), 310, fields, BODY)
    return Command.request(310, 1, fields, BODY).encode()


def rules() -> access.Acl:
    entry = access.PolicyEntry(resource="Topic:ord*", actions=["Pub"], decision="Allow")
    return access.Acl(policies=[access.Policy(entries=[entry])])


def with_users(*, java: bool = False) -> BrokerGate:
    users, acls = UserTable(), AclTable()
    users.create(access.User(username=NAME, password=SECRET), 0)
    acls.merge(f"User:{NAME}", rules(), 0)
    settings = AccessSettings(
        authentication_enabled=True, authorization_enabled=True, java_authorization=java
    )
    return BrokerGate(settings, "DefaultCluster", users, acls, NoRecords())


def with_accounts() -> BrokerGate:
    gate = BrokerGate(AccessSettings(), "DefaultCluster", UserTable(), AclTable(), NoRecords())
    account = access.Account(access_key=NAME, secret_key=SECRET, topic_perms=["orders=PUB"])
    gate.accounts = read_accounts([], [account])
    return gate


def check_cost(gate: BrokerGate | None, frame: bytes) -> float:
    """Seconds of CPU to read a send's fields, checked before or not."""
    requests = [read_command(each) for each in FrameReader().feed(frame * COUNT)]
    started = time.process_time()
    for request in requests:
        if gate is not None:
            gate.check(Here(), request)
        request.header(sending.SendRequestV2)
    return (time.process_time() - started) / COUNT


def sign_cost(make: Callable[[], bytes]) -> float:
    """Seconds of CPU a client takes to make a signed send."""
    started = time.process_time()
    for _ in range(COUNT):
        make()
    return (time.process_time() - started) / COUNT


async def send_cost(address: Address, frame: bytes) -> float:
    """Seconds of CPU a broker, and whoever reads its answers, take for a send."""
    reader, writer = await asyncio.open_connection(*address)
    started = time.process_time()
    writer.write(frame * COUNT)
    frames, answered = FrameReader(), 0
    while answered < COUNT:
        answered += len(frames.feed(await reader.read(1 << 20)))
    cost = (time.process_time() - started) / COUNT
    writer.close()
    await writer.wait_closed()
    return cost


async def whole_sends() -> dict[str, float]:
    """Return the cost of whole sends, each the best of rounds that take turns."""
    best: dict[str, float] = {}
    kinds = {
        "as Java, javaAuthorization": (True, as_java()),
        "as Java": (False, as_java()),
        "bound to the code": (False, bound()),
    }
    for _ in range(ROUNDS):
        for name, (java, frame) in kinds.items():
            with tempfile.TemporaryDirectory() as directory:
                config = BrokerConfig(
                    listen_port=0,
                    bind_address="127.0.0.1",
                    authentication_enabled=True,
                    authorization_enabled=True,
                    java_authorization=java,
                )
                broker = Broker(config, Path(directory))
                address = await broker.start()
                try:
                    state = broker.state
                    state.users.create(access.User(username=NAME, password=SECRET), 0)
                    state.acls.merge(f"User:{NAME}", rules(), 0)
                    cost = await send_cost(address, frame)
                finally:
                    await broker.stop()
                best[name] = min(cost, best.get(name, cost))
    return best


def main() -> None:
    checks = {
        "no check": (None, as_java()),
        "users, as Java, javaAuthorization": (with_users(java=True), as_java()),
        "users, as Java": (with_users(), as_java()),
        "users, bound to the code": (with_users(), bound()),
        "accounts, as Java": (with_accounts(), as_java()),
        "accounts, bound to the code": (with_accounts(), bound()),
    }
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (gate, frame) in checks.items():
            cost = check_cost(gate, frame)
            best[name] = min(cost, best.get(name, cost))
    print(f"{'check of a send':36}{'µs':>8}{'more':>8}")
    for name, cost in best.items():
        print(f"{name:36}{cost * 1e6:>8.1f}{(cost - best['no check']) * 1e6:>8.1f}")
    print(f"\n{'whole send to a broker with users':36}{'µs':>8}{'ratio':>8}")
    whole = asyncio.run(whole_sends())
    first = whole["as Java, javaAuthorization"]
    for name, cost in whole.items():
        print(f"{name:36}{cost * 1e6:>8.1f}{cost / first:>8.3f}")
    print(f"\n{'a client makes a signed send':36}{'µs':>8}")
    for name, make in {"as Java": as_java, "bound to the code": bound}.items():
        print(f"{name:36}{min(sign_cost(make) for _ in range(ROUNDS)) * 1e6:>8.1f}")


if __name__ == "__main__":
    main()
