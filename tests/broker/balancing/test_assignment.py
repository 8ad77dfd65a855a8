"""Shares the broker computes for its clients, and the modes it remembers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.allocation import allocate
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.broker.balancing.assignment import RequestModeTable, share
from pocketmq.model import MessageQueue, MessageRequestMode, sort_queues
from pocketmq.protocol.requests.assignment import RequestMode

PULL, POP = MessageRequestMode.PULL, MessageRequestMode.POP


def mode(how: MessageRequestMode = PULL, sharing: int = 0) -> RequestMode:
    return RequestMode(topic="T", consumer_group="g", mode=how, pop_share_queue_num=sharing)


def queues(*ids: int, broker: str = "b") -> list[MessageQueue]:
    return [MessageQueue("T", broker, each) for each in ids]


MEMBERS = st.lists(st.sampled_from(["m1", "m10", "m2", "é", "Z"]), min_size=1, max_size=6)
QUEUES = st.sets(
    st.builds(MessageQueue, st.just("T"), st.sampled_from(["b1", "b2"]), st.integers(0, 9)),
    min_size=1,
)


@given(st.sampled_from(["AVG", "AVG_BY_CIRCLE"]), QUEUES, MEMBERS)
def test_pulling_members_get_what_they_would_compute_themselves(
    name: str, all_queues: set[MessageQueue], members: list[str]
) -> None:
    strategy = strategy_by_name(name)
    for member in members:
        expected = allocate(strategy, "g", member, all_queues, members)
        assert share(mode(), name, member, all_queues, members) == expected


@pytest.mark.parametrize("name", ["CONSISTENT_HASH", "MACHINE_ROOM", "STICKY", "", None])
def test_a_strategy_only_clients_know_gives_no_answer(name: str | None) -> None:
    assert share(mode(), name, "m", queues(0), ["m"]) is None


def test_a_stranger_owns_nothing() -> None:
    assert share(mode(), "AVG", "stranger", queues(0, 1), ["m"]) == []


@pytest.mark.parametrize(("member", "ids"), [("", (0,)), ("m", ())])
def test_without_a_member_or_queues_there_is_no_answer(member: str, ids: tuple[int, ...]) -> None:
    assert share(mode(), "AVG", member, queues(*ids), ["m"]) is None


@pytest.mark.parametrize("sharing", [-1, 0, 2, 3])
def test_popping_members_that_share_with_everybody_pop_whole_brokers(sharing: int) -> None:
    everything = queues(0, 1, broker="a") + queues(0, 1, 2, broker="b")
    expected = queues(-1, broker="a") + queues(-1, broker="b")

    for member in ("m1", "stranger"):
        result = share(mode(POP, sharing), "AVG", member, everything, ["m1", "m2", "m3"])
        assert result == expected


def test_popping_members_share_the_queues_of_those_behind_them() -> None:
    members, all_queues = ["m1", "m2", "m3", "m4"], queues(*range(8))

    def popped(member: str, sharing: int) -> list[int]:
        result = share(mode(POP, sharing), "AVG", member, all_queues, members)
        assert result is not None
        return sorted(queue.queue_id for queue in result)

    assert popped("m1", 1) == [0, 1, 2, 3]
    assert popped("m4", 1) == [0, 1, 6, 7]
    assert popped("m3", 2) == [0, 1, 4, 5, 6, 7]
    assert popped("stranger", 1) == []


def test_more_popping_members_than_queues_take_turns() -> None:
    members = ["m1", "m2", "m3", "m4"]

    def popped(member: str) -> list[MessageQueue] | None:
        return share(mode(POP, 1), "AVG", member, queues(0, 1), members)

    assert [popped(member) for member in members] == [queues(0), queues(1), queues(0), queues(1)]
    assert popped("stranger") == []
    assert popped("") is None


@given(st.integers(1, 3), QUEUES, st.sets(st.sampled_from("abcde"), min_size=1))
def test_every_queue_is_popped_by_a_member(
    sharing: int, all_queues: set[MessageQueue], members: set[str]
) -> None:
    taken: set[MessageQueue] = set()
    for member in members:
        taken |= set(share(mode(POP, sharing), "AVG", member, all_queues, members) or ())
    whole = {MessageQueue("T", queue.broker_name, -1) for queue in all_queues}

    assert taken in (all_queues, whole)
    if len(members) > sharing + 1 and len(members) <= len(all_queues):
        assert taken == all_queues
    assert sort_queues(taken)


def test_the_default_mode_holds_where_none_was_set() -> None:
    table = RequestModeTable()

    assert table.mode("T", "g", PULL) == mode()
    assert table.mode("T", "g", POP) == mode(POP, -1)


def test_retry_topics_are_pulled_unless_said_otherwise() -> None:
    table = RequestModeTable()
    assert table.mode("%RETRY%g", "g", POP).mode is PULL


def test_a_choice_holds_for_its_topic_and_group_alone() -> None:
    table = RequestModeTable()
    table.set(mode(POP, 3), "T", "g")

    assert table.mode("T", "g", PULL) == mode(POP, 3)
    assert table.mode("T", "h", PULL).mode is PULL
    assert table.mode("U", "g", PULL).mode is PULL


def test_documents_bring_choices_back() -> None:
    table, again = RequestModeTable(), RequestModeTable()
    table.set(mode(POP, 3), "T", "g")
    table.set(mode(PULL), "T", "h")
    documents = table.unsaved()
    table.saved(documents)
    again.load((topic, text) for topic, text in documents.items() if text)

    assert again.entries == table.entries
    assert table.unsaved() == {}
