"""The table of topics: made by sends, for groups, by operators; versions, pages, documents."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.topics.table import MAX_QUEUES, TopicConfigTable, system_topics
from pocketmq.errors import AttributeRefused
from pocketmq.model import DataVersion, TopicConfig, TopicFilterType

TEMPLATE = TopicConfig(topic_name="TBW102", read_queue_nums=8, write_queue_nums=8, perm=7)


def topic(name: str, queues: int = 4, perm: int = 6, **attributes: str) -> TopicConfig:
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        attributes=attributes,
    )


@pytest.fixture
def table() -> TopicConfigTable:
    return TopicConfigTable([TEMPLATE], now_ms=1)


def create(
    table: TopicConfigTable, name: str, template: str = "TBW102", queues: int = 4
) -> TopicConfig:
    config = table.create_on_send(name, template, queues, 0, auto_create=True, now_ms=2)
    assert config is not None
    return config


@pytest.mark.parametrize(("wanted", "given"), [(3, 3), (100, 8), (0, 0), (-1, 0)])
def test_a_first_send_makes_as_many_queues_as_the_client_and_the_template_allow(
    table: TopicConfigTable, wanted: int, given: int
) -> None:
    assert create(table, "T", queues=wanted) == topic("T", given)
    assert table.get("T") == topic("T", given)


def test_a_topic_inherits_all_permissions_but_inheritance_and_the_filter_type(
    table: TopicConfigTable,
) -> None:
    parent = msgspec.structs.replace(
        topic("parent", perm=5), topic_filter_type=TopicFilterType.MULTI_TAG
    )
    table.put("parent", parent, 2)
    made = table.create_on_send("T", "parent", 4, 3, auto_create=False, now_ms=2)

    assert made is not None
    assert (made.perm, made.topic_filter_type) == (4, TopicFilterType.MULTI_TAG)
    assert made.topic_sys_flag == 3


@pytest.mark.parametrize("template", ["nowhere", "closed"])
def test_a_template_that_is_missing_or_not_to_be_inherited_makes_nothing(
    table: TopicConfigTable, template: str
) -> None:
    table.put("closed", topic("closed"), 2)

    assert table.create_on_send("T", template, 4, 0, auto_create=True, now_ms=2) is None
    assert "T" not in table


def test_without_auto_creation_tbw102_makes_nothing(table: TopicConfigTable) -> None:
    assert table.create_on_send("T", "TBW102", 4, 0, auto_create=False, now_ms=2) is None


def test_a_topic_that_is_there_is_given_as_it_is(table: TopicConfigTable) -> None:
    table.put("T", topic("T", 1), 2)
    version = table.version

    assert create(table, "T", "nowhere") == topic("T", 1)
    assert table.version is version


def test_a_topic_for_a_group_is_made_once(table: TopicConfigTable) -> None:
    made = table.create_for_group("%RETRY%g", 2, order=True, sys_flag=2, now_ms=3)
    again = table.create_for_group("%RETRY%g", 5, now_ms=4)

    assert made is not None
    assert (made.read_queue_nums, made.perm, made.order, made.topic_sys_flag) == (2, 6, True, 2)
    assert again is made


def test_a_topic_for_a_group_follows_whether_the_group_keeps_the_order(
    table: TopicConfigTable,
) -> None:
    table.create_for_group("%RETRY%g", 1, order=False, now_ms=3)
    version = table.version
    changed = table.create_for_group("%RETRY%g", 1, order=True, now_ms=4)

    assert changed is not None
    assert changed.order
    assert table.is_order("%RETRY%g")
    assert table.version == version.following(4)


def test_a_full_table_makes_no_further_topics_but_changes_those_it_has() -> None:
    table = TopicConfigTable([TEMPLATE], limit=2)
    table.put("T", topic("T"), 1)

    assert table.full
    assert table.create_on_send("U", "TBW102", 4, 0, auto_create=True, now_ms=1) is None
    assert table.create_for_group("%RETRY%g", 1, now_ms=1) is None
    assert table.update(topic("T", 9), 1)


@pytest.mark.parametrize(("wanted", "given"), [(2**31 - 1, MAX_QUEUES), (-1, 0)])
def test_a_group_gets_no_more_queues_than_a_topic_may_have(
    table: TopicConfigTable, wanted: int, given: int
) -> None:
    made = table.create_for_group("%RETRY%g", wanted, now_ms=1)

    assert made is not None
    assert made.read_queue_nums == made.write_queue_nums == given


def test_an_update_replaces_everything_but_the_attributes(table: TopicConfigTable) -> None:
    table.update(topic("T", 4, 6, **{"+message.type": "FIFO"}), 2)
    changed = table.update(topic("T", 8, 4), 3)

    assert changed
    assert table.get("T") == topic("T", 8, 4, **{"message.type": "FIFO"})


def test_an_update_that_changes_nothing_leaves_the_version(table: TopicConfigTable) -> None:
    table.update(topic("T"), 2)
    version = table.version

    assert not table.update(topic("T"), 3)
    assert table.version is version


def test_a_refused_attribute_leaves_the_topic_as_it_was(table: TopicConfigTable) -> None:
    table.update(topic("T"), 2)
    version = table.version

    with pytest.raises(AttributeRefused, match="unsupported key: colour"):
        table.update(topic("T", 9, 6, **{"+colour": "red"}), 3)
    assert table.get("T") == topic("T")
    assert table.version is version


def test_every_change_moves_the_version(table: TopicConfigTable) -> None:
    table.put("T", topic("T"), 5)
    assert table.version == DataVersion(timestamp=5, counter=1)
    assert table.remove("T", 6)
    assert table.version == DataVersion(timestamp=6, counter=2)
    assert not table.remove("T", 7)
    assert table.version == DataVersion(timestamp=6, counter=2)


def test_topics_of_the_order_configuration_keep_the_order(table: TopicConfigTable) -> None:
    table.put("T", topic("T"), 2)
    table.set_order(["T", "unknown"], 3)
    version = table.version
    table.set_order(["T"], 4)

    assert table.is_order("T")
    assert not table.is_order("unknown")
    assert table.version is version


def test_system_topics_are_rocketmqs_and_the_brokers_own(table: TopicConfigTable) -> None:
    assert table.is_system("TBW102")
    assert table.is_system("SCHEDULE_TOPIC_XXXX")
    assert table.is_system("rmq_sys_anything")
    assert TopicConfigTable([topic("DefaultCluster", perm=7)]).is_system("DefaultCluster")
    assert not table.is_system("DefaultCluster")
    assert table.system_names == {"TBW102"}


def test_new_and_changed_topics_are_announced_once(table: TopicConfigTable) -> None:
    table.put("T", topic("T"), 2)
    table.put("T", topic("T", 5), 2)
    table.put("U", topic("U"), 2)
    table.put("V", topic("V"), 2)
    table.remove("V", 2)

    assert sorted(table.take_unannounced()) == ["T", "U"]
    assert table.take_unannounced() == []


def test_only_what_changed_is_left_to_save(table: TopicConfigTable) -> None:
    assert table.unsaved() == {}
    table.put("T", topic("T"), 2)
    table.put("U", topic("U"), 2)
    table.saved(["U"])
    table.put("V", topic("V"), 2)
    table.remove("V", 2)
    unsaved = table.unsaved()

    assert set(unsaved) == {"T", "V"}
    assert unsaved["V"] is None
    table.saved(unsaved)
    assert table.unsaved() == {}


NAMES = st.text("abcXYZ%_-é\U00010400\uffff", min_size=1, max_size=4)


@given(st.sets(NAMES, max_size=12), st.integers(1, 5))
def test_pages_together_hold_every_topic_once(names: set[str], size: int) -> None:
    table = TopicConfigTable()
    for name in names:
        table.put(name, topic(name), 1)
    seen: list[str] = []
    while page := table.page(len(seen), size, table.version):
        assert len(page) <= size
        seen += page

    assert seen == sorted(names, key=lambda name: name.encode("utf-16-be"))


def test_a_table_that_changed_is_read_from_the_beginning(table: TopicConfigTable) -> None:
    for name in "abc":
        table.put(name, topic(name), 1)
    old = table.version
    assert list(table.page(2, 2, old)) == ["b", "c"]
    table.put("d", topic("d"), 2)

    assert list(table.page(2, 2, old)) == ["TBW102", "a"]
    assert list(table.page(2, 2, None)) == ["TBW102", "a"]
    assert list(table.page(-5, 2, table.version)) == ["TBW102", "a"]
    assert list(table.page(0, -1, table.version)) == []


TOPICS = st.builds(
    topic,
    NAMES,
    st.integers(0, MAX_QUEUES),
    st.integers(0, 15),
)


@given(st.lists(TOPICS, max_size=8))
def test_documents_bring_every_topic_back(topics: list[TopicConfig]) -> None:
    table = TopicConfigTable()
    for each in topics:
        table.put(each.topic_name, each, 1)
    again = TopicConfigTable()
    again.load((name, document) for name, document in table.unsaved().items() if document)

    assert again.entries == table.entries
    assert again.unsaved() == {}


def shown(**settings: bool) -> dict[str, tuple[int, int]]:
    config = BrokerConfig(broker_name="b", broker_cluster_name="c", **settings)  # type: ignore[arg-type]
    return {each.topic_name: (each.write_queue_nums, each.perm) for each in system_topics(config)}


def test_a_broker_begins_with_javas_topics() -> None:
    assert shown() == {
        "SELF_TEST_TOPIC": (1, 6),
        "BenchmarkTest": (1024, 6),
        "c": (16, 7),
        "b": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "c_REPLY_TOPIC": (1, 6),
        "rmq_sys_REVIVE_LOG_c": (8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_b": (1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
        "rmq_sys_wheel_timer": (1, 6),
        "TBW102": (8, 7),
    }


def test_tbw102_is_there_only_to_create_topics() -> None:
    assert "TBW102" not in shown(auto_create_topic_enable=False)


def test_templates_that_are_switched_off_can_still_be_inherited() -> None:
    topics = shown(cluster_topic_enable=False, broker_topic_enable=False)

    assert topics["c"] == (16, 1)
    assert topics["b"] == (1, 1)


def test_the_trace_topic_is_made_on_demand() -> None:
    assert shown(trace_topic_enable=True)["RMQ_SYS_TRACE_TOPIC"] == (1, 6)
