"""The table of consumers, row by row, and against a naive model."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pocketmq.broker.members.consumers import Change, ClientInfo, OnlineConsumers
from pocketmq.model import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, Subscription
from pocketmq.protocol.peers import Language
from tests.broker.wire import Wire


def client(name: str, version: int = 409) -> ClientInfo:
    return ClientInfo(name, Language.JAVA, version)


def topic(name: str, version: int = 1, text: str = "*", kind: str = "TAG") -> Subscription:
    return Subscription(topic=name, sub_version=version, sub_string=text, expression_type=kind)


def data(*subscriptions: Subscription, group: str = "g", **fields: Any) -> ConsumerData:
    return ConsumerData(group_name=group, subscription_data_set=list(subscriptions), **fields)


class Stage:
    """A table with a few connections to play with."""

    def __init__(self) -> None:
        self.table = OnlineConsumers()
        self.a, self.b, self.c = Wire("a"), Wire("b"), Wire("c")
        self.now = 0.0

    def beat(
        self,
        wire: Wire,
        *subscriptions: Subscription,
        name: str = "",
        notify: bool = True,
        short: bool = False,
        **fields: Any,
    ) -> Change:
        return self.table.register(
            wire,
            client(name or wire.remote_address),
            data(*subscriptions, **fields),
            notify=notify,
            now=self.now,
            keep_subscriptions=short,
        )


@pytest.fixture
def stage() -> Stage:
    return Stage()


BROADCASTING = MessageModel.BROADCASTING


def test_a_new_connection_is_a_change_that_notifies_its_whole_group(stage: Stage) -> None:
    assert stage.beat(stage.a, topic("T")) == Change("g", updated=True, notify=(stage.a,))
    assert stage.beat(stage.b, topic("T")) == Change("g", updated=True, notify=(stage.a, stage.b))


def test_the_same_heartbeat_again_is_no_change(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))

    assert stage.beat(stage.a, topic("T")) == Change("g", updated=False)


def test_type_model_and_start_are_those_of_the_latest_heartbeat(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))
    change = stage.beat(
        stage.a,
        topic("T"),
        consume_type=ConsumeType.CONSUME_ACTIVELY,
        message_model=BROADCASTING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
    )
    group = stage.table.get("g")

    assert change == Change("g", updated=False)
    assert group is not None
    assert group.consume_type is ConsumeType.CONSUME_ACTIVELY
    assert group.message_model is BROADCASTING
    assert group.consume_from_where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP


def test_another_client_on_a_known_connection_replaces_it_in_silence(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"), name="one")

    assert stage.beat(stage.a, topic("T"), name="two") == Change("g", updated=False)
    group = stage.table.get("g")
    assert group is not None
    assert group.client_ids() == ["two"]


def test_one_client_on_two_connections_is_listed_twice(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"), name="one")
    stage.beat(stage.b, topic("T"), name="one")
    group = stage.table.get("g")

    assert group is not None
    assert group.client_ids() == ["one", "one"]
    assert group.find("one") is stage.a
    assert group.find("two") is None


def test_a_topic_that_came_is_a_change(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))

    assert stage.beat(stage.a, topic("T"), topic("U")).updated


def test_a_topic_that_went_is_a_change(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"), topic("U"))

    assert stage.beat(stage.a, topic("U")).updated
    assert stage.table.subscription("g", "T") is None


def test_members_that_disagree_tell_each_other_with_every_heartbeat(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))
    stage.beat(stage.b, topic("U"))

    for _ in range(2):
        assert stage.beat(stage.a, topic("T")).notify == (stage.a, stage.b)
        assert stage.beat(stage.b, topic("U")).notify == (stage.a, stage.b)


@pytest.mark.parametrize(("version", "text"), [(3, "new"), (2, "old"), (1, "old")])
def test_only_a_newer_subscription_replaces_one_and_none_is_a_change(
    stage: Stage, version: int, text: str
) -> None:
    stage.beat(stage.a, topic("T", 2, "old"))
    change = stage.beat(stage.a, topic("T", version, "new"))
    found = stage.table.subscription("g", "T")

    assert change == Change("g", updated=False)
    assert found is not None
    assert found.subscription.sub_string == text


def test_a_group_that_wants_no_notice_gets_none_from_heartbeats(stage: Stage) -> None:
    assert stage.beat(stage.a, topic("T"), notify=False) == Change("g", updated=True)


def test_broadcasting_members_are_not_notified(stage: Stage) -> None:
    assert stage.beat(stage.a, topic("T"), message_model=BROADCASTING) == Change("g", updated=True)
    assert stage.table.unregister("g", stage.b, notify=True) == Change("g", updated=False)
    stage.beat(stage.b, topic("T"), message_model=BROADCASTING)
    assert stage.table.closed(stage.b) == [Change("g", updated=True)]


def test_a_short_heartbeat_keeps_the_subscriptions(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))

    assert stage.beat(stage.a, short=True) == Change("g", updated=False)
    assert stage.beat(stage.b, short=True) == Change("g", updated=True, notify=(stage.a, stage.b))
    assert stage.table.subscription("g", "T") is not None


def test_a_client_that_leaves_is_removed_at_once_and_the_others_are_notified(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))
    stage.beat(stage.b, topic("T"))

    change = stage.table.unregister("g", stage.a, notify=True)
    assert change == Change("g", updated=True, notify=(stage.b,))


def test_a_stranger_that_leaves_wakes_the_group_all_the_same(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))

    change = stage.table.unregister("g", stage.b, notify=True)
    assert change == Change("g", updated=False, notify=(stage.a,))


def test_leaving_a_group_without_members_changes_nothing(stage: Stage) -> None:
    assert stage.table.unregister("g", stage.a, notify=True) == Change("g", updated=False)


def test_a_group_goes_with_its_last_member_and_its_subscriptions_too(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))

    assert stage.table.unregister("g", stage.a, notify=True) == Change("g", updated=True)
    assert stage.table.get("g") is None
    assert stage.table.subscription("g", "T") is None
    assert stage.table.groups_subscribing("T") == []


def test_a_closed_connection_leaves_every_group_and_the_others_are_always_notified(
    stage: Stage,
) -> None:
    for group in ("g", "h", "i"):
        stage.beat(stage.a, topic("T"), group=group, notify=False)
    for group in ("g", "h"):
        stage.beat(stage.b, topic("T"), group=group, notify=False)

    assert stage.table.closed(stage.a) == [
        Change("g", updated=True, notify=(stage.b,)),
        Change("h", updated=True, notify=(stage.b,)),
        Change("i", updated=True),
    ]
    assert stage.table.closed(stage.a) == []
    assert stage.table.closed(stage.c) == []


def test_silent_connections_are_let_go_without_a_word(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))
    stage.beat(stage.a, topic("T"), group="h")
    stage.now = 50.0
    stage.beat(stage.b, topic("T"))

    assert stage.table.expire(120.0, 120.0) == []
    assert stage.table.expire(120.1, 120.0) == [stage.a]
    assert stage.table.closed(stage.a) == []
    assert list(stage.table.groups) == ["g"]


def test_any_heartbeat_keeps_a_member_alive(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"), name="one")
    stage.now = 100.0
    stage.beat(stage.a, short=True, name="two")

    assert stage.table.expire(200.0, 120.0) == []


def test_a_fingerprint_that_differs_from_the_last_is_noticed(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"))
    table = stage.table

    assert [table.fingerprint("g", each) for each in (7, 7, 8, 0, 8)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    table.closed(stage.a)
    assert not table.fingerprint("g", 9)


def test_groups_are_found_by_topic(stage: Stage) -> None:
    stage.beat(stage.a, topic("T"), topic("U"))
    stage.beat(stage.b, topic("U"), group="h")

    assert stage.table.groups_subscribing("T") == ["g"]
    assert stage.table.groups_subscribing("U") == ["g", "h"]


def test_an_expression_is_compiled_once_for_all_versions(stage: Stage) -> None:
    stage.beat(stage.a, topic("T", 1, "a > 1", "SQL92"))
    first = stage.table.subscription("g", "T")
    stage.beat(stage.a, topic("T", 2, "a > 1", "SQL92"))
    second = stage.table.subscription("g", "T")
    stage.beat(stage.a, topic("T", 3, "a > 2", "SQL92"))
    third = stage.table.subscription("g", "T")

    assert first is not None
    assert second is not None
    assert third is not None
    assert first.sql is not None
    assert second.sql is first.sql
    assert second.subscription.sub_version == 2
    assert third.sql is not None
    assert third.sql.matches({"a": "2"}) is False
    assert third.sql.matches({"a": "3"}) is True
    assert not third.by_tag


@pytest.mark.parametrize(("text", "kind"), [("a >", "SQL92"), ("x", "GROOVY")])
def test_an_expression_that_cannot_be_read_is_kept_without_a_filter(
    stage: Stage, text: str, kind: str
) -> None:
    stage.beat(stage.a, topic("T", 1, text, kind))
    found = stage.table.subscription("g", "T")

    assert found is not None
    assert found.sql is None
    assert not found.by_tag


def test_tags_are_ready_to_filter(stage: Stage) -> None:
    wanted = Subscription(topic="T", sub_string="a", code_set=frozenset({97}), sub_version=1)
    stage.beat(stage.a, wanted)
    found = stage.table.subscription("g", "T")

    assert found is not None
    assert found.by_tag
    assert found.tags.matches_code(97)
    assert not found.tags.matches_code(98)


class NaiveGroups(RuleBasedStateMachine):
    """The table against lists that are searched from end to end."""

    wires = [Wire(str(number)) for number in range(4)]
    CONNECTION = st.sampled_from(range(4))
    GROUP = st.sampled_from(["g", "h"])
    TOPICS = st.lists(
        st.tuples(st.sampled_from("TUV"), st.integers(0, 3)), unique_by=lambda each: each[0]
    )
    MODEL = st.sampled_from([MessageModel.CLUSTERING, MessageModel.CLUSTERING, BROADCASTING])

    def __init__(self) -> None:
        super().__init__()
        self.table = OnlineConsumers()
        self.now = 0.0
        self.members: list[list[Any]] = []  # group, connection, client id, last seen
        self.topics: dict[str, dict[str, int]] = {}
        self.model: dict[str, MessageModel] = {}

    def of(self, group: str) -> list[list[Any]]:
        return [member for member in self.members if member[0] == group]

    def told(self, group: str) -> tuple[Wire, ...]:
        if self.model.get(group) is BROADCASTING:
            return ()
        return tuple(self.wires[member[1]] for member in self.of(group))

    def drop(self, group: str, connection: int) -> bool:
        kept = [member for member in self.members if member[:2] != [group, connection]]
        dropped = len(kept) < len(self.members)
        self.members = kept
        return dropped

    @rule(
        connection=CONNECTION,
        group=GROUP,
        name=st.sampled_from(["p", "q"]),
        wanted=TOPICS,
        model=MODEL,
        notify=st.booleans(),
        short=st.booleans(),
        pause=st.floats(0, 40),
    )
    def beat(
        self,
        connection: int,
        group: str,
        name: str,
        wanted: list[tuple[str, int]],
        model: MessageModel,
        notify: bool,
        short: bool,
        pause: float,
    ) -> None:
        self.now += pause
        if not self.of(group):
            self.topics[group] = {}
        known = [member for member in self.of(group) if member[1] == connection]
        updated = not known
        if known:
            known[0][2:] = [name, self.now]
        else:
            self.members.append([group, connection, name, self.now])
        if not short:
            old = self.topics[group]
            updated = updated or set(old) != {each for each, _ in wanted}
            self.topics[group] = {each: max(v, old.get(each, -1)) for each, v in wanted}
        self.model[group] = model
        notified = self.told(group) if updated and notify else ()

        change = self.table.register(
            self.wires[connection],
            client(name),
            data(*(topic(each, v) for each, v in wanted), group=group, message_model=model),
            notify=notify,
            now=self.now,
            keep_subscriptions=short,
        )
        assert change == Change(group, updated, notified)

    @rule(connection=CONNECTION, group=GROUP, notify=st.booleans())
    def leave(self, connection: int, group: str, notify: bool) -> None:
        dropped = self.drop(group, connection)
        notified = self.told(group) if notify else ()

        change = self.table.unregister(group, self.wires[connection], notify=notify)
        assert change == Change(group, dropped, notified)

    @rule(connection=CONNECTION)
    def close(self, connection: int) -> None:
        expected = [
            Change(group, updated=True, notify=self.told(group))
            for group in ("g", "h")
            if self.drop(group, connection)
        ]
        changes = self.table.closed(self.wires[connection])
        assert sorted(changes, key=lambda change: change.group) == expected

    @precondition(lambda self: self.members)
    @rule(pause=st.floats(0, 130))
    def wait(self, pause: float) -> None:
        self.now += pause
        silent = {member[1] for member in self.members if self.now - member[3] > 120}
        self.members = [member for member in self.members if self.now - member[3] <= 120]

        assert set(self.table.expire(self.now, 120.0)) == {self.wires[each] for each in silent}

    @invariant()
    def both_agree(self) -> None:
        assert {
            name: (
                [(wire, member.client.client_id) for wire, member in group.members.items()],
                {t: each.subscription.sub_version for t, each in group.subscriptions.items()},
            )
            for name, group in self.table.groups.items()
        } == {
            name: (
                [(self.wires[member[1]], member[2]) for member in self.of(name)],
                self.topics[name],
            )
            for name in ("g", "h")
            if self.of(name)
        }


NaiveGroups.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestNaiveGroups = NaiveGroups.TestCase
