"""What goes where: decided from what both clusters tell."""

from typing import Any

import pytest

from pocketmq.admin.migration.plan import ClusterContents, MigrationChoice, make_plan
from pocketmq.model import GroupConfig, MessageQueue, TopicConfig


def topic(name: str, queues: int = 4, **more: Any) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, **more)


def found(*configs: TopicConfig, brokers: int = 1, groups: tuple[str, ...] = ()) -> ClusterContents:
    names = tuple(f"broker-{number}" for number in range(brokers))
    return ClusterContents(
        cluster="C",
        brokers=names,
        topics={each.topic_name: dict.fromkeys(names, each) for each in configs},
        groups={name: GroupConfig(group_name=name) for name in groups},
        own_topics=frozenset({"C", *names}),
    )


def queue(name: str, broker: int, queue_id: int) -> MessageQueue:
    return MessageQueue(name, f"broker-{broker}", queue_id)


def test_queues_keep_their_numbers_where_brokers_agree() -> None:
    plan = make_plan(found(topic("t", 3), brokers=2), found(brokers=2), MigrationChoice())
    assert [pair[0] for pair in plan.topics[0].queues] == [
        pair[1] for pair in plan.topics[0].queues
    ]
    assert plan.topics[0].create == {"broker-0": topic("t", 3), "broker-1": topic("t", 3)}
    assert (plan.notes, plan.problems) == ((), ())


def test_two_brokers_fold_into_one_with_a_queue_for_each() -> None:
    plan = make_plan(found(topic("t", 2), brokers=2), found(), MigrationChoice())
    assert plan.topics[0].queues == (
        (queue("t", 0, 0), queue("t", 0, 0)),
        (queue("t", 0, 1), queue("t", 0, 1)),
        (queue("t", 1, 0), queue("t", 0, 2)),
        (queue("t", 1, 1), queue("t", 0, 3)),
    )
    assert plan.topics[0].create == {"broker-0": topic("t", 4)}
    assert plan.notes == ()


def test_more_queues_than_before_move_keys_and_that_is_said() -> None:
    ordered = topic("t", 4, order=True)
    plan = make_plan(found(ordered), found(brokers=3), MigrationChoice())
    (note,) = plan.notes
    assert note == (
        "ordered topic t has 4 queues in the source and 6 on the target: producers will send a key to "
        "another queue than before"
    )


def test_a_topic_with_other_counts_is_refused_by_name() -> None:
    plan = make_plan(found(topic("t", 8)), found(topic("t", 4)), MigrationChoice())
    assert plan.topics == ()
    (problem,) = plan.problems
    assert problem == (
        "topic 't' exists on the target with 4 queues, the source has 8: messages of a key would "
        "change their queue; delete it there, or give it as many queues"
    )


def test_a_topic_that_may_not_be_read_is_refused_with_what_helps() -> None:
    plan = make_plan(found(topic("t", perm=2)), found(), MigrationChoice())
    (problem,) = plan.problems
    assert problem == (
        "topic 't' is not readable on the source's broker 'broker-0': allow it with `pocketmq "
        "admin updateTopicPerm -t 't' -p 6`, or skip it with --without"
    )
    assert (
        make_plan(found(topic("t", perm=2)), found(), MigrationChoice(without=("t",))).problems
        == ()
    )


def test_a_topic_that_may_only_be_read_can_be_written_until_all_is_copied() -> None:
    (plan,) = make_plan(found(topic("t", perm=4)), found(), MigrationChoice()).topics
    assert plan.create["broker-0"].perm == 6
    assert plan.final == {"broker-0": 4}


def test_a_topic_that_was_closed_after_an_earlier_run_is_opened_again() -> None:
    closed = topic("t", perm=4)
    (plan,) = make_plan(found(closed), found(closed), MigrationChoice(made=frozenset({"t"}))).topics
    assert (plan.create["broker-0"].perm, plan.final) == (6, {"broker-0": 4})
    refused = make_plan(found(closed), found(closed), MigrationChoice())
    assert refused.problems == ("topic 't' is not writable on the target's broker 'broker-0'",)


def test_attributes_are_set_anew() -> None:
    config = topic("t", attributes={"message.type": "FIFO"})
    (plan,) = make_plan(found(config), found(), MigrationChoice()).topics
    assert plan.create["broker-0"].attributes == {"+message.type": "FIFO"}


RETRIES = ("%RETRY%g", "%RETRY%g_t", "%RETRY%g+t", "%DLQ%g")


def test_retries_and_dead_letters_go_with_their_group() -> None:
    source = found(*(topic(name, 1) for name in (*RETRIES, "%RETRY%h")), groups=("g", "h"))
    plan = make_plan(source, found(), MigrationChoice(groups=("g",)))
    assert {each.topic for each in plan.topics} == set(RETRIES)
    assert plan.known_groups == ("g",)


def test_dead_letters_without_a_group_are_named() -> None:
    plan = make_plan(found(topic("%DLQ%deleted", 1)), found(), MigrationChoice())
    assert (plan.topics, plan.left_out) == ((), {"%DLQ%deleted": "its group is not moved"})


def test_fewer_retry_queues_than_before_share_them() -> None:
    retries = topic("%RETRY%g", 1)
    plan = make_plan(
        found(retries, brokers=2, groups=("g",)), found(retries, groups=("g",)), MigrationChoice()
    )
    assert {pair[1] for pair in plan.topics[0].queues} == {queue("%RETRY%g", 0, 0)}
    assert (plan.groups, plan.problems) == ((), ())


def test_what_belongs_to_brokers_stays() -> None:
    source = found(
        *map(topic, ("C", "broker-0", "TBW102", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_wheel_timer")),
        groups=("TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS"),
    )
    plan = make_plan(source, found(), MigrationChoice())
    assert (plan.topics, plan.groups) == ((), ())


@pytest.mark.parametrize(
    "wanted", [MigrationChoice(topics=("no",)), MigrationChoice(groups=("no",))]
)
def test_a_name_that_is_not_there_is_a_problem(wanted: MigrationChoice) -> None:
    (problem,) = make_plan(found(topic("t")), found(), wanted).problems
    assert "'no' does not exist in the source" in problem


def test_settings_of_a_group_on_the_target_stay_and_that_is_said() -> None:
    source = found(groups=("g",))
    other = {"g": GroupConfig(group_name="g", retry_max_times=3)}
    target = ClusterContents(
        cluster="C", brokers=("b",), topics={}, groups=other, own_topics=frozenset()
    )
    plan = make_plan(source, target, MigrationChoice())
    assert plan.groups == ()
    assert plan.notes == ("group g exists on the target with other settings, which are kept",)
