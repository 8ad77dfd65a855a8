"""Every rule of the table, one by one. Java's own answers are in `test_as_java`."""

from collections.abc import Callable

import pytest

from pocketmq.errors import ServerError
from pocketmq.model import BrokerData, DataVersion, QueueData
from pocketmq.model.topics import TopicMapping
from pocketmq.nameserver import registrations
from pocketmq.nameserver.route_registry import RouteRegistry
from pocketmq.protocol.requests.topics import TopicTableBody
from tests.nameserver.shapes import addresses, broker, config, permissions, queue_counts, topics

Change = Callable[[RouteRegistry], object]


def table_with(
    *brokers: registrations.Announcement, known: registrations.RegisteredTopics | None = None
) -> RouteRegistry:
    table = RouteRegistry()
    for each in brokers:
        table.register(each, known or topics("t", "u"), each.address, 0.0)
    return table


class TestRegistering:
    def test_a_route_names_every_broker_with_queues_of_the_topic(self) -> None:
        table = table_with(broker("b", 0), broker("b", 1))
        table.register(broker("d", 0, cluster="c2"), topics("t", "v"), "x", 0.0)
        route = table.routes.get("t")
        assert route is not None
        assert route.broker_datas == [
            BrokerData(
                cluster="c",
                broker_name="b",
                broker_addrs={0: "b-0:1", 1: "b-1:1"},
                enable_acting_master=False,
            ),
            BrokerData(
                cluster="c2",
                broker_name="d",
                broker_addrs={0: "d-0:1"},
                enable_acting_master=False,
            ),
        ]
        assert route.queue_datas == [
            QueueData(broker_name=name, read_queue_nums=4, write_queue_nums=4, perm=6)
            for name in ("b", "d")
        ]
        assert table.routes.get("nobody's") is None

    def test_one_lone_topic_of_an_unknown_broker_is_refused_and_leaves_no_trace(self) -> None:
        table = RouteRegistry()
        with pytest.raises(ServerError) as refusal:
            table.register(broker(), topics("t"), "x", 0.0)
        assert (refusal.value.code, refusal.value.remark) == (1, "register broker failed")
        assert table.brokers.clusters() == {}
        assert table.data_version(registrations.BrokerKey("c", "b-0:1")) is None

    def test_one_lone_topic_of_an_unknown_slave_is_refused_too(self) -> None:
        table = table_with(broker("b", 0))
        with pytest.raises(ServerError):
            table.register(broker("b", 1), topics("t"), "x", 0.0)
        assert addresses(table) == {0: "b-0:1"}

    def test_one_lone_topic_of_a_known_broker_is_added(self) -> None:
        table = table_with(broker())
        table.register(broker(), topics("new", version=2), "x", 1.0)
        assert queue_counts(table, "new") == {"b": 4}
        assert queue_counts(table, "t") == {"b": 4}

    def test_no_topics_at_all_are_welcome(self) -> None:
        table = RouteRegistry()
        assert table.register(broker(), topics(), "x", 0.0) == registrations.Registered(first=True)
        assert addresses(table) == {0: "b-0:1"}

    @pytest.mark.parametrize(
        ("known", "counts", "why"),
        [
            (topics(config("t", 9), "u"), 4, "the same version is not looked at"),
            (topics(config("t", 9), "u", version=2), 9, "another version is"),
            (topics(config("t", 9), "u", state=1), 9, "also if only the state differs"),
        ],
    )
    def test_topics_change_with_the_version_of_their_table(
        self, known: registrations.RegisteredTopics, counts: int, why: str
    ) -> None:
        table = table_with(broker())
        table.register(broker(), known, "x", 1.0)
        assert queue_counts(table, "t") == {"b": counts}, why

    def test_a_table_without_a_version_is_new_every_time(self) -> None:
        table = table_with(broker(), known=registrations.RegisteredTopics(table=TopicTableBody()))
        for count in (5, 7):
            configs = {each: config(each, count) for each in ("t", "u")}
            known = registrations.RegisteredTopics(
                table=TopicTableBody(topic_config_table=configs), digest=b"%d" % count
            )
            table.register(broker(), known, "x", 1.0)
            assert queue_counts(table, "t") == {"b": count}

    def test_what_is_missing_is_added_although_the_version_is_the_same(self) -> None:
        table = table_with(broker())
        table.remove_topic("t")
        table.register(broker(), topics("t", "u"), "x", 1.0)
        assert queue_counts(table, "t") == {"b": 4}

    def test_topics_a_broker_no_longer_lists_stay(self) -> None:
        table = table_with(broker())
        table.register(broker(), topics("t", "v", version=2), "x", 1.0)
        assert queue_counts(table, "u") == {"b": 4}

    def test_topics_a_broker_no_longer_lists_go_if_that_is_wanted(self) -> None:
        table = table_with(broker("b"), broker("d"))
        table.register(broker("b"), topics("t", "v"), "x", 1.0, delete_absent=True)
        assert queue_counts(table, "u") == {"d": 4}
        table.register(broker("d"), topics("t", "v"), "x", 1.0, delete_absent=True)
        assert table.routes.get("u") is None

    def test_topics_stay_if_a_broker_has_static_ones(self) -> None:
        table = table_with(broker())
        known = topics("t", "v", version=2)
        mapping = {"t": TopicMapping(topic="t", bname="b", total_queues=4)}
        static = TopicTableBody(
            topic_config_table=known.table.topic_config_table,
            data_version=known.table.data_version,
            topic_queue_mapping_info_map=mapping,
        )
        table.register(
            broker(), registrations.RegisteredTopics(table=static), "x", 1.0, delete_absent=True
        )
        assert queue_counts(table, "u") == {"b": 4}
        route = table.routes.get("t")
        assert route is not None
        assert route.topic_queue_mapping_by_broker == {"b": mapping["t"]}

    def test_a_deleted_topic_takes_its_mapping_along(self) -> None:
        table = table_with(broker())
        table.routes.put_mappings("b", {"t": TopicMapping(topic="t", bname="b", total_queues=4)})
        table.remove_topic("t")
        table.register(broker(), topics("t"), "x", 1.0)
        route = table.routes.get("t")
        assert route is not None
        assert route.topic_queue_mapping_by_broker is None

    def test_topics_of_an_old_slave_do_not_count(self) -> None:
        table = table_with(broker("b", 1, acting=None))
        assert table.routes.get("t") is None
        assert addresses(table) == {1: "b-1:1"}

    def test_topics_of_the_first_slave_count_if_it_is_of_5x(self) -> None:
        table = table_with(broker("b", 1), broker("b", 2), known=topics("t", "u"))
        table.register(broker("b", 2), topics("t", "v", version=2), "x", 1.0)
        assert permissions(table, "t") == {"b": 6}
        assert table.routes.get("v") is None

    def test_topics_of_a_slave_that_stands_in_cannot_be_written_to(self) -> None:
        table = table_with(broker("b", 1, acting=True), known=topics(config("t", 4, 7), "u"))
        assert permissions(table, "t") == {"b": 5}

    def test_a_slave_learns_where_its_master_is(self) -> None:
        table = RouteRegistry()
        assert table.register(broker("b", 1), topics(), 1, 0.0) == registrations.Registered(
            first=True
        )
        table.register(broker("b", 0), topics(), 0, 0.0)
        assert table.register(broker("b", 1), topics(), 1, 1.0) == registrations.Registered(
            master_address="b-0:1", master_ha_address="ha-of-b-0:1"
        )

    def test_an_address_has_one_id(self) -> None:
        """A slave that becomes master registers as such: its old id is free."""
        table = table_with(broker("b", 1, "x:1"))
        table.register(broker("b", 0, "x:1"), topics("t", "u"), "x:1", 1.0)
        assert addresses(table) == {0: "x:1"}

    def test_an_id_has_one_address_and_the_last_counts(self) -> None:
        table = table_with(broker("b", 0, "x:1"), broker("b", 0, "y:1"))
        assert addresses(table) == {0: "y:1"}

    def test_a_master_of_an_earlier_term_is_not_heard(self) -> None:
        table = RouteRegistry()
        table.register(broker("b", 0, "x:1"), topics("t", "u", state=2), "x", 0.0)
        table.register(broker("b", 1, "y:1"), topics("t", "u", state=1), "y", 0.0)
        assert (
            table.register(broker("b", 0, "y:1"), topics("t", "u", state=1), "y", 1.0)
            == registrations.Registered()
        )
        assert addresses(table) == {0: "x:1"}
        assert table.data_version(registrations.BrokerKey("c", "y:1")) is None

    def test_an_address_under_a_new_name_leaves_the_old_one(self) -> None:
        table = table_with(broker("b", 0, "x:1"))
        table.register(broker("d", 0, "x:1"), topics("t", "w"), "x", 1.0)
        assert table.brokers.clusters() == {"c": ["d"]}
        assert table.routes.get("u") is None
        assert queue_counts(table, "t") == {"d": 4}

    def test_an_address_in_a_new_cluster_is_not_lost_with_the_old_one(self) -> None:
        table = table_with(broker("b", 0, "x:1", cluster="old"))
        table.register(broker("b", 0, "x:1", cluster="new"), topics("t", "u"), "again", 100.0)
        assert table.expire(130.0) == []
        assert table.connection_lost("x:1") == []
        assert addresses(table) == {0: "x:1"}

    def test_filter_servers_stand_beside_their_broker(self) -> None:
        table = table_with(broker(filter_servers=("f:1",)), broker("d"))
        route = table.routes.get("t")
        assert route is not None
        assert route.filter_server_table == {"b-0:1": ["f:1"]}
        table.register(broker(filter_servers=None), topics("t", "u"), "x", 1.0)
        assert table.routes.get("t") is route
        table.register(broker(), topics("t", "u"), "x", 1.0)
        changed = table.routes.get("t")
        assert changed is not None
        assert changed.filter_server_table == {}


class TestVersions:
    def test_a_broker_is_told_whether_its_table_has_changed(self) -> None:
        table = table_with(broker())
        key = registrations.BrokerKey("c", "b-0:1")
        same = DataVersion(counter=1, timestamp=1)
        assert not table.changed(key, same)
        assert table.changed(key, DataVersion(counter=2, timestamp=1))
        assert table.changed(key, None)
        assert table.changed(registrations.BrokerKey("c", "stranger:1"), same)

    def test_a_registration_that_is_known_need_not_be_read_again(self) -> None:
        table = RouteRegistry()
        known = topics("t", "u", digest=b"1")
        assert not table.holds(broker(), b"1")
        table.register(broker(), known, "x", 0.0)
        assert table.holds(broker(), b"1")
        table.register(broker(), None, "x", 60.0)
        assert table.next_deadline() == 180.0
        assert table.data_version(broker().key) == known.table.data_version
        assert table.holds(broker(), b"1")

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: table.remove_topic("t"),
            lambda table: table.remove_topic("t", ["b"]),
            lambda table: table.add_topic("w", [QueueData(broker_name="b", perm=6)]),
            lambda table: table.connection_lost("x"),
            lambda table: table.unregister(broker().key, "b", 0),
            lambda table: table.register(broker(), topics("t", "v", version=2), "x", 1.0),
            lambda table: table.register(broker(address="y:1"), topics("t", "v"), "y", 1.0),
        ],
    )
    def test_a_registration_must_be_read_again_once_something_has_changed(
        self, change: Change
    ) -> None:
        table = RouteRegistry()
        table.register(broker(), topics("t", "u", digest=b"1"), "x", 0.0)
        change(table)
        assert not table.holds(broker(), b"1")

    def test_topics_that_did_not_count_are_read_when_they_do(self) -> None:
        table = RouteRegistry()
        table.register(broker("b", 0), topics("t", "u", digest=b"0"), 0, 0.0)
        table.register(broker("b", 1), topics("t", "v", digest=b"1"), 1, 0.0)
        assert not table.holds(broker("b", 1), b"1")

    def test_parts_of_a_split_registration_are_all_remembered(self) -> None:
        table = RouteRegistry()
        table.register(broker(), topics("t", "u", digest=b"1"), "x", 0.0)
        table.register(broker(), topics("v", "w", digest=b"2"), "x", 0.0)
        assert table.holds(broker(), b"1")
        assert table.holds(broker(), b"2")


class TestLeaving:
    def test_the_last_address_takes_name_cluster_and_topics_with_it(self) -> None:
        table = table_with(broker("b", 0), broker("b", 1), broker("d", 0))
        table.unregister(registrations.BrokerKey("c", "b-0:1"), "b", 0)
        assert addresses(table) == {1: "b-1:1"}
        assert queue_counts(table, "t") == {"b": 4, "d": 4}
        table.unregister(registrations.BrokerKey("c", "b-1:1"), "b", 1)
        assert table.brokers.clusters() == {"c": ["d"]}
        assert queue_counts(table, "t") == {"d": 4}
        table.unregister(registrations.BrokerKey("c", "d-0:1"), "d", 0)
        assert table.brokers.clusters() == {}
        assert list(table.routes.queues.topics()) == []

    def test_a_stranger_that_leaves_changes_nothing(self) -> None:
        table = table_with(broker())
        before = table.routes.version
        table.unregister(registrations.BrokerKey("c", "y:1"), "stranger", 0)
        assert table.routes.version == before

    def test_a_lost_connection_takes_every_broker_that_used_it_last(self) -> None:
        table = RouteRegistry()
        for name in ("b", "d", "e"):
            table.register(broker(name), topics("t", "u"), "shared", 0.0)
        table.register(broker("e"), topics("t", "u"), "own", 1.0)
        departed = table.connection_lost("shared")
        assert [each.name for each in departed] == ["b", "d"]
        assert table.brokers.clusters() == {"c": ["e"]}
        assert table.connection_lost("shared") == []

    def test_one_whose_place_is_taken_can_no_longer_be_lost(self) -> None:
        table = table_with(broker("b", 0, "x:1", acting=True), broker("b", 0, "y:1", acting=True))
        table.connection_lost("x:1")
        assert addresses(table) == {0: "y:1"}
        assert permissions(table, "t") == {"b": 6}

    def test_silence_is_counted_from_the_last_sign_of_life(self) -> None:
        table = RouteRegistry()
        table.register(broker("b"), topics("t", "u"), "x", 0.0)
        table.register(broker("d", silence=10.0), topics("t", "u"), "y", 0.0)
        assert table.next_deadline() == 10.0
        table.heard(registrations.BrokerKey("c", "d-0:1"), "y", 9.0)
        table.heard(registrations.BrokerKey("c", "stranger:1"), "y", 9.0)
        assert table.expire(18.9) == []
        assert [(each.name, each.connection) for each in table.expire(19.0)] == [("d", "y")]
        assert table.next_deadline() == 120.0
        assert table.expire(119.9) == []
        assert [each.name for each in table.expire(120.0)] == ["b"]
        assert table.next_deadline() is None

    @pytest.mark.parametrize(("acting", "perm"), [(True, 4), (False, 6), (None, 6)])
    def test_without_a_master_nothing_can_be_written_if_slaves_stand_in(
        self, acting: bool | None, perm: int
    ) -> None:
        table = table_with(broker("b", 0, acting=acting), broker("b", 1, acting=acting))
        table.connection_lost("b-0:1")
        assert permissions(table, "t") == {"b": perm}
        assert addresses(table) == {1: "b-1:1"}

    def test_a_master_that_comes_back_can_be_written_to_again(self) -> None:
        table = table_with(broker("b", 0, acting=True), broker("b", 1, acting=True))
        table.connection_lost("b-0:1")
        table.register(broker("b", 0, acting=True), topics("t", "u"), "z", 1.0)
        assert permissions(table, "t") == {"b": 6}


class TestNotifications:
    """Expected as a Java 5.5.0 name server was seen to send them."""

    def come(self, table: RouteRegistry, broker_id: int, *, acting: bool = True) -> object:
        announced = broker("b", broker_id, acting=acting)
        return table.register(announced, topics("t", "u"), broker_id, 0.0).notify

    def test_the_others_are_told_of_one_with_a_lower_id(self) -> None:
        table = RouteRegistry()
        assert self.come(table, 2) is None
        assert self.come(table, 1) == registrations.NotifyMinBrokerId(
            receivers=("b-2:1",), broker_id=1, address="b-1:1", ha_address="ha-of-b-1:1"
        )
        assert self.come(table, 0) == registrations.NotifyMinBrokerId(
            receivers=("b-2:1", "b-1:1"), broker_id=0, address="b-0:1", ha_address="ha-of-b-0:1"
        )
        assert self.come(table, 0) is None

    def test_all_that_are_left_are_told_when_the_lowest_goes(self) -> None:
        table = RouteRegistry()
        for broker_id in (0, 1, 2):
            self.come(table, broker_id)
        (departed,) = table.connection_lost(0)
        assert departed.notify == registrations.NotifyMinBrokerId(
            receivers=("b-1:1", "b-2:1"), broker_id=1, address="b-1:1", offline_address="b-0:1"
        )
        assert table.unregister(registrations.BrokerKey("c", "b-2:1"), "b", 2).notify is None
        assert table.unregister(registrations.BrokerKey("c", "b-1:1"), "b", 1).notify is None

    def test_without_stand_ins_only_who_comes_is_told_of(self) -> None:
        table = RouteRegistry()
        self.come(table, 1, acting=False)
        assert self.come(table, 0, acting=False) is not None
        (departed,) = table.connection_lost(0)
        assert departed.notify is None


class TestTopicsByHand:
    def test_a_topic_on_a_known_broker_is_added(self) -> None:
        table = table_with(broker())
        table.add_topic("new", [QueueData(broker_name="b", read_queue_nums=3, perm=6)])
        assert queue_counts(table, "new") == {"b": 3}

    def test_a_topic_with_a_stranger_is_not(self) -> None:
        table = table_with(broker())
        known, stranger = QueueData(broker_name="b", perm=6), QueueData(broker_name="x", perm=6)
        for datas in ([stranger], [known, stranger], []):
            table.add_topic("new", datas)
        assert table.routes.get("new") is None

    def test_a_topic_is_forgotten_everywhere_or_on_some_brokers(self) -> None:
        table = table_with(broker("b"), broker("d"))
        table.remove_topic("t", ["b", "stranger"])
        table.remove_topic("u")
        table.remove_topic("nobody's")
        assert queue_counts(table, "t") == {"d": 4}
        assert table.routes.get("u") is None

    def test_write_permission_is_wiped_until_the_next_changed_registration(self) -> None:
        known = topics(config("t", perm=7), config("u", perm=4))
        table = table_with(broker("b"), broker("d"), known=known)
        assert table.wipe_write_permission("b") == 2
        assert permissions(table, "t") == {"b": 5, "d": 7}
        table.register(broker("b"), known, "x", 1.0)
        assert permissions(table, "t") == {"b": 5, "d": 7}
        table.register(broker("b"), topics(config("t", perm=7), "u", version=2), "x", 1.0)
        assert permissions(table, "t") == {"b": 7, "d": 7}
        assert table.wipe_write_permission("stranger") == 0

    def test_adding_write_permission_leaves_read_and_write_alone(self) -> None:
        table = table_with(broker(), known=topics(config("t", perm=7), config("u", perm=4)))
        assert table.add_write_permission("b") == 2
        assert permissions(table, "t") == permissions(table, "u") == {"b": 6}


class TestLimits:
    limits = registrations.TableLimits(topics=3, brokers=2, replicas=2, filter_servers=1, queues=8)

    @pytest.mark.parametrize(
        ("announced", "known"),
        [
            (broker("b", 2), topics("t", "u")),
            (broker("e"), topics("t", "u")),
            (broker("b"), topics("t", "u", "v", "w", version=2)),
            (broker("b"), topics(config("t", 9), "u", version=2)),
            (broker("b"), topics(config("t", -1), "u", version=2)),
            (broker("b"), topics("t", "", version=2)),
            (broker("b"), topics("t", "u\n", version=2)),
            (broker("b"), topics("t", "u" * 256, version=2)),
            (broker("b", filter_servers=("f:1", "f:2")), topics("t", "u", version=2)),
            (broker("b", filter_servers=("f 1",)), topics("t", "u", version=2)),
            (broker("", address="x:1"), topics("t", "u")),
            (broker("b", address="x 1"), topics("t", "u")),
            (broker("b", address="x" * 256), topics("t", "u")),
            (broker("b", cluster="\x00"), topics("t", "u")),
            (broker("b", zone="z" * 256), topics("t", "u")),
        ],
    )
    def test_too_much_is_refused_and_changes_nothing(
        self, announced: registrations.Announcement, known: registrations.RegisteredTopics
    ) -> None:
        table = RouteRegistry(self.limits)
        for each in (broker("b", 0), broker("b", 1), broker("d")):
            table.register(each, topics("t", "u"), each.address, 0.0)
        before = (table.routes.version, table.brokers.clusters(), addresses(table))
        with pytest.raises(ServerError, match="refused"):
            table.register(announced, known, "x", 1.0)
        assert (table.routes.version, table.brokers.clusters(), addresses(table)) == before
        assert table.next_deadline() == 120.0

    def test_too_many_single_topics_and_mappings_are_refused(self) -> None:
        table = RouteRegistry(self.limits)
        table.register(broker(), topics("t", "u", "v"), "x", 0.0)
        with pytest.raises(ServerError, match="more than 3 topics"):
            table.add_topic("w", [QueueData(broker_name="b", perm=6)])
        with pytest.raises(ServerError, match="9 read and 0 write queues"):
            table.add_topic("t", [QueueData(broker_name="b", read_queue_nums=9)])
        mappings = {f"m{number}": TopicMapping() for number in range(4)}
        mapped = TopicTableBody(topic_queue_mapping_info_map=mappings)
        with pytest.raises(ServerError, match="more than 3 topics"):
            table.register(broker(), registrations.RegisteredTopics(table=mapped), "x", 0.0)

    def test_host_names_are_good_broker_names_and_topics(self) -> None:
        table = RouteRegistry()
        table.register(broker("node1.example.com"), topics("node1.example.com", "t"), "x", 0.0)
        assert queue_counts(table, "node1.example.com") == {"node1.example.com": 4}


class TestRoutesAreKept:
    def test_a_route_is_the_same_object_until_it_changes(self) -> None:
        table = table_with(broker("b"), broker("d"))
        route = table.routes.get("t")
        table.register(broker("b"), topics("t", "u"), "x", 30.0)
        table.register(broker("b"), topics("t", "u", "v", version=2), "x", 60.0)
        table.heard(broker("b").key, "x", 70.0)
        assert table.routes.get("t") is route
        table.connection_lost("d-0:1")
        assert table.routes.get("t") is not route

    def test_the_version_grows_only_if_an_answer_could_differ(self) -> None:
        table = table_with(broker("b"), broker("d"))
        version = table.routes.version
        table.register(broker("b"), topics("t", "u"), "x", 30.0)
        table.heard(broker("b").key, "x", 70.0)
        assert table.routes.version == version
        table.register(broker("b", cluster="c2"), topics("t", "u"), "x", 90.0)
        assert table.routes.version > version
