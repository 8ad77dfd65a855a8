"""STICKY groups of processes on an unmodified Java broker: what its members get when it changes."""

import logging
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks._handovers import Record, examine, lost, repeated
from benchmarks._rebalance_group import Group, Way

import pocketmq as mq
from pocketmq.admin.access import rules_for
from pocketmq.cli import run
from pocketmq.model import TopicConfig
from pocketmq.model.group_balance import BalanceMode, handover_version
from pocketmq.protocol.requests.access import User
from tests.access.attempts import ACCOUNTS, USERS
from tests.interop.groups import wait_for_commits
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Admin, Jars, wait_until, with_properties
from tests.interop.rows import Row
from tests.interop.sticky_groups import (
    AVG,
    BROKER,
    HANDLER_MS,
    HEARTBEAT,
    QUEUES,
    STICKY,
    DefaultLocks,
    astray,
    first_deliveries,
    group_of,
)
from tests.interop.test_access_java import PROVIDERS, ROOT
from tests.interop.tools import comparable

# One worker runs them all: they share a broker.
pytestmark = [pytest.mark.java, pytest.mark.timeout(300), pytest.mark.xdist_group("sticky")]

# A Java broker may take in the last heartbeat of a client after it has seen its connection close:
# the dead one is a member again until it has been silent for so long, by default two minutes.
SILENT_MS = 15_000
COMMIT_INTERVAL = 0.1
GRACE = 0.5
"""Seconds by which a commit may be late on a busy machine."""
LONGEST = 5.0
"""Seconds: what nobody has to wait for is the end of a lock's lease (60) or of a fence (15)."""

_USERS, _ACCOUNTS = (
    [mq.Credentials(access_key=name, secret_key=known[name]) for name in names]
    for names, known in ((("root", "alice"), USERS), (("rootkey1", "alicekey"), ACCOUNTS))
)
_ACCOUNT_FILE = f"""
accounts:
- accessKey: rootkey1
  secretKey: {ACCOUNTS["rootkey1"]}
  admin: true
- accessKey: alicekey
  secretKey: {ACCOUNTS["alicekey"]}
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms: [orders=SUB]
  groupPerms: [billing=SUB]
"""


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("sticky")
    release = DefaultLocks(jars.directory, jars.programs.parent)
    with java_brokers(release, home, BROKER, channelExpiredTimeout=SILENT_MS) as running:
        yield running


def _without_harm(record: Record) -> None:
    """Nothing was lost, no queue had two owners, and none moved that did not have to."""
    assert lost(record) == set()
    for figures in examine(record):
        assert (figures.kind, figures.moved) == (figures.kind, figures.minimum)
        assert set(figures.two_owners) <= {0.0}, figures


def test_members_join_leave_and_die_and_the_fewest_queues_move(java: JavaBroker) -> None:
    with group_of(java, STICKY, 50) as group:
        group.start(["m1", "m3", "m5"])
        group.join("m2")
        group.leave("m3")
        killed_at = group.kill("m1")
        record = group.finish()
    _without_harm(record)
    assert [figures.kind for figures in examine(record)] == ["join", "leave", "kill"]
    assert max(time for figures in examine(record) for time in figures.without_owner) < LONGEST
    # Twice is only what the killed member had in flight, or had finished since its last commit.
    first = first_deliveries(record)
    again = [first[each.queue, each.offset] for each in repeated(record.deliveries)]
    since = killed_at - COMMIT_INTERVAL - HANDLER_MS / 1e3 - GRACE
    assert [each for each in again if each.member != "m1" or each.time < since] == []


def test_an_orderly_group_keeps_the_order_of_each_queue(java: JavaBroker) -> None:
    orderly = STICKY._replace(options={**STICKY.options, "orderly": True})
    with group_of(java, orderly, 20) as group:
        group.start(["m1", "m2"])
        group.join("m3")
        group.leave("m1")
        record = group.finish()
    _without_harm(record)
    delivered: dict[str, list[int]] = {}
    for each in sorted(record.deliveries):
        delivered.setdefault(each.queue, []).append(each.offset)
    assert delivered == {queue: list(range(len(found))) for queue, found in delivered.items()}
    assert len(delivered) == QUEUES


@pytest.mark.line("5.x")  # a broker sees joins and departures, as above
def test_a_rolling_restart_under_kept_names_moves_nothing(java: JavaBroker) -> None:
    with group_of(java, STICKY.restarting, 50) as group:
        group.start(["m1", "m2", "m3"])
        group.rolling_restart()
        record = group.finish()
    _without_harm(record)
    (figures,) = examine(record)
    assert (figures.moved, len(figures.silence_moved)) == (0, QUEUES)
    assert repeated(record.deliveries) == []


@pytest.mark.line("5.x")  # a broker sees joins and departures, as above
def test_a_rolling_deploy_to_sticky_and_back_loses_nothing(java: JavaBroker) -> None:
    def marks(group: Group) -> list[int | None]:
        return [handover_version(member.client_id) for member in group.present.values()]

    with group_of(java, AVG, 50) as group:
        group.start(["m1", "m3"])
        assert marks(group) == [None, None]
        group.rolling_restart(STICKY)
        assert marks(group) == [1, 1]
        group.join("m2", STICKY)
        group.rolling_restart(AVG)
        assert marks(group) == [None, None, None]
        record = group.finish()
    assert lost(record) == set()
    join = examine(record)[1]
    assert (join.kind, join.moved, join.twice) == ("join", join.minimum, 0)


def _java_member(jars: Jars, home: Path) -> Way:
    """Return how the Java member of the benchmark is started."""
    heartbeat = {"heartbeat": f"{HEARTBEAT * 1e3:.0f}"}
    command = with_properties(jars.compiled(home, "GroupMember"), heartbeat)
    return Way("Java", {}, java_pauses=True, command=tuple(command))


def test_java_members_keep_their_share_beside_sticky_ones(
    java: JavaBroker, jars: Jars, tmp_path: Path
) -> None:
    apache = _java_member(jars, tmp_path)
    with group_of(java, STICKY, 50) as group:
        group.start(["m2", "m4"])
        for change in (
            lambda: group.join("m3", apache),
            lambda: group.join("m1"),
            lambda: group.leave("m4"),
            lambda: group.kill("m3"),
        ):
            change()
            wait_until(lambda: not astray(group), "AVG's share for Java's member")
        record = group.finish()
    assert lost(record) == set()
    assert [each.kind for each in record.happenings] == ["join", "join", "leave", "kill"]


def test_mqadmin_shows_a_sticky_group_as_any_other(
    java: JavaBroker, jars: Jars, tmp_path: Path
) -> None:
    java.create_topic("shown", 2)
    with mq.Producer(java.address, group="shop") as producer:
        for number in range(4):
            queue = mq.MessageQueue("shown", BROKER, number % 2)
            producer.send(mq.Message("shown", b"x"), queue=queue)
    with Admin(jars, tmp_path) as admin:
        plain, sticky = (_shown(java, admin, strategy) for strategy in ("AVG", "STICKY"))
        listed = admin.run(f"consumerProgress -n {java.address}")
    assert sticky == plain
    assert any("@one" in line for line in sticky)
    assert any("%RETRY%GROUP" in line for line in sticky)
    assert "POCKETMQ_BALANCE" not in listed
    assert "group-STICKY" in listed


def _shown(java: JavaBroker, admin: Admin, strategy: str) -> list[str]:
    """Return what mqadmin shows of a group that has consumed all, without what names it."""
    group, handled = f"group-{strategy}", list[bytes]()
    consumer = mq.PushConsumer(
        java.address, group=group, strategy=strategy, consume_from="first",
        client_ip="10.0.0.1", instance_name="one",
    )  # fmt: skip

    def handle(message: mq.ReceivedMessage) -> None:
        handled.append(message.body)
        if len(handled) == 1:  # else the group's retries have no offset for a long while
            raise mq.RetryLater(1)

    consumer.subscribe("shown", "*", handle)
    with consumer:
        wait_until(lambda: len(handled) == 5, "all messages, one of them again")
        for topic in ("shown", f"%RETRY%{group}"):
            wait_for_commits(java.address, consumer, group, topic)
        commands = (f"consumerProgress -g {group} -s true", f"consumerConnection -g {group}")
        texts = [admin.run(f"{command} -n {java.address}") for command in commands]
    return comparable("\n".join(texts).replace(group, "GROUP").replace("@pm1", ""))


class Guarded(Row):
    """A Java broker that asks who one is, with a user who may consume `orders` and nothing else."""

    def __init__(self, jars: Jars, home: Path, stack: ExitStack) -> None:
        self.root, self.user = _USERS if jars.is_5 else _ACCOUNTS
        settings: dict[str, str] = {"aclEnable": "true"}
        if jars.is_5:
            settings = {"authenticationEnabled": "true", "authorizationEnabled": "true"}
            settings |= {"initAuthenticationUser": ROOT, **PROVIDERS}
        else:
            file = home / BROKER / "conf" / "plain_acl.yml"
            file.parent.mkdir(parents=True)
            file.write_text(_ACCOUNT_FILE)
        super().__init__(jars, home, stack, ("ours", "java"), BROKER, **settings)
        with mq.Admin(self.address, credentials=self.root) as admin:
            config = TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4)
            admin.topics.create(config, address=self.addresses[BROKER]).all()
            if jars.is_5:
                name, secret = self.user.access_key, self.user.secret_key
                user = User(username=name, password=secret, user_type="Normal")
                admin.access.create_user(user, "C").all()
                allowed = ["Topic:orders", "Group:billing"]
                rules = rules_for(f"User:{name}", allowed, ["Sub"], "Allow")
                admin.access.create_rules(rules, "C").all()

    def member(self, name: str = "one") -> mq.PushConsumer:
        consumer = mq.PushConsumer(
            self.address, group="billing", credentials=self.user, strategy="STICKY",
            consume_from="first", instance_name=name,
        )  # fmt: skip
        consumer.subscribe("orders", "*", lambda _: None)
        return consumer

    def run(self, words: list[str]) -> None:
        """Carry out a command as the administrator."""
        root = ["--access-key", self.root.access_key, "--secret-key", self.root.secret_key]
        assert run([*words, "-n", self.address, *root]) == 0


@pytest.fixture
def guarded(jars: Jars, tmp_path: Path) -> Iterator[Guarded]:
    with ExitStack() as stack:
        yield Guarded(jars, tmp_path, stack)


def _cure(consumer: mq.PushConsumer) -> list[str]:
    """Return the command that a member names, which takes part as a Java one does."""
    balance = consumer.balance
    assert (balance.mode, balance.strategy) == (BalanceMode.JAVA, "AVG")
    assert handover_version(balance.client_id) is None
    program, *words = shlex.split(balance.reason.partition("can run: ")[2].partition(" (")[0])
    assert program == "pocketmq"
    return words


def test_missing_rights_are_named_with_the_commands_that_grant_them(
    guarded: Guarded, jars: Jars, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pocketmq.client"):
        for command in ("updateTopic", "createAcl" if jars.is_5 else "updateAclConfig"):
            with guarded.member() as consumer:
                words = _cure(consumer)
                assert words[1] == command
                if command == "updateAclConfig":  # as the text in parentheses says
                    words[words.index("-s") + 1] = ACCOUNTS["alicekey"]
                    words[words.index("-t") + 1] += ",orders=SUB"
                guarded.run(words)
    told = [text for text in caplog.messages if "STICKY is not possible" in text]
    assert len(told) == 2

    def takes_part() -> bool:
        with guarded.member() as consumer:
            return consumer.balance.mode is BalanceMode.STICKY

    wait_until(takes_part, "the broker to heed the new rights")
    with guarded.member() as one, guarded.member("two") as two:

        def shared() -> bool:
            shares = [set(each.assignment().get("orders", ())) for each in (one, two)]
            return [len(share) for share in shares] == [2, 2] and not shares[0] & shares[1]

        wait_until(shared, "two members to share")
