"""What access control costs a broker for one send: nothing, users and rules, accounts of 4.x."""

import base64
import hmac
import time

from pocketmq.broker.access.accounts import read_accounts
from pocketmq.broker.access.gate import Gate
from pocketmq.broker.access.settings import AccessSettings
from pocketmq.broker.access.users import AclTable, UserTable
from pocketmq.protocol.bodies.access import Account, Acl, Policy, PolicyEntry, User
from pocketmq.protocol.command import Command, read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.headers.sending import SendRequestV2

COUNT = 2000
ROUNDS = 9
NAME, SECRET, BODY = "somebody", "a long secret", b"x" * 100


class Here:
    remote_address = "127.0.0.1:5"


def frame() -> bytes:
    header = SendRequestV2(
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
    fields = header.to_ext() | {"AccessKey": NAME}
    content = "".join(fields[key] for key in sorted(fields)).encode() + BODY
    digest = hmac.digest(SECRET.encode(), content, "sha1")
    fields["Signature"] = base64.b64encode(digest).decode()
    return Command.request(310, 1, fields, BODY).encode()


def with_users() -> Gate:
    users, acls = UserTable(), AclTable()
    users.create(User(username=NAME, password=SECRET), 0)
    entry = PolicyEntry(resource="Topic:ord*", actions=["Pub"], decision="Allow")
    acls.merge(f"User:{NAME}", Acl(policies=[Policy(entries=[entry])]), 0)
    settings = AccessSettings(authentication_enabled=True, authorization_enabled=True)
    return Gate(settings, "DefaultCluster", users, acls)


def with_accounts() -> Gate:
    gate = Gate(AccessSettings(), "DefaultCluster", UserTable(), AclTable())
    account = Account(access_key=NAME, secret_key=SECRET, topic_perms=["orders=PUB"])
    gate.accounts = read_accounts([], [account])
    return gate


def measure(gate: Gate | None) -> float:
    """Seconds of CPU to read a send's fields, checked before or not; the best of some rounds."""
    best = float("inf")
    data = frame() * COUNT
    for _ in range(ROUNDS):
        requests = [read_command(each) for each in FrameReader().feed(data)]
        started = time.process_time()
        for request in requests:
            if gate is not None:
                gate.check(Here, request)
            request.header(SendRequestV2)
        best = min(best, (time.process_time() - started) / COUNT)
    return best


def main() -> None:
    plain = measure(None)
    print(f"{'':24}{'µs a send':>10}{'more':>8}")
    for name, gate in (("none", None), ("users", with_users()), ("accounts", with_accounts())):
        cost = measure(gate)
        print(f"{name:24}{cost * 1e6:>10.1f}{(cost - plain) * 1e6:>8.1f}")


if __name__ == "__main__":
    main()
