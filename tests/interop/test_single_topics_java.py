"""Topics that brokers register one by one (`enableSingleTopicRegister`), with servers of both makes."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import pocketmq as mq
from tests.interop.jvm import Jars
from tests.interop.rows import ROWS, Row

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(params=["java-ours", pytest.param("ours-java", marks=pytest.mark.line("5.x"))])
def row(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Row]:
    with ExitStack() as stack:
        home = tmp_path_factory.mktemp("single")
        kind = ROWS[request.param]
        yield Row(jars, home, stack, kind, "broker-0", enableSingleTopicRegister="true")


def test_a_new_topic_is_routed_and_no_other_is_lost(row: Row) -> None:
    """The name server deletes what a registration of the whole broker lacks."""
    with mq.Admin(row.address) as admin:
        admin.name_servers.change_config({"deleteTopicWithBrokerRegistration": "true"}).all()
        for topic in ("one", "two", "three"):
            row.create_topic(topic, 2)
        for topic in ("one", "two", "three", "TBW102"):
            assert [each.broker_name for each in admin.topics.route(topic).broker_datas]
    with mq.Producer(row.address, group="shop") as producer:
        assert producer.send(mq.Message("made-by-a-send", b"x")).ok
        assert producer.send(mq.Message("one", b"x")).ok
