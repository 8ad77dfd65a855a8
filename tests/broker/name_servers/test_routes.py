"""Routes of other brokers: asked for once, served while renewed."""

from pocketmq.broker.name_servers.routes import FRESH_FOR, Found, Queues, RouteCache
from pocketmq.model import MessageQueue, QueueData, TopicRoute
from pocketmq.model.route import MAX_ROUTE_QUEUES


def route(queues: int = 2, perm: int = 6) -> TopicRoute:
    data = QueueData(broker_name="b", read_queue_nums=queues, write_queue_nums=queues, perm=perm)
    return TopicRoute(queue_datas=[data])


def queues(count: int = 2) -> Queues:
    return frozenset(MessageQueue("T", "b", each) for each in range(count))


class Names:
    """A name server that answers when a test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Found]] = []
        self.table = RouteCache(lambda topic, found: self.asked.append((topic, found)))
        self.told: list[Queues | None] = []

    def find(self, now: float = 0.0, topic: str = "T") -> None:
        self.table.find(topic, now, self.told.append)

    def answer(self, found: TopicRoute | None) -> None:
        asked, self.asked = self.asked, []
        for _, callback in asked:
            callback(found)


def test_who_asks_first_waits_for_the_name_server() -> None:
    names = Names()
    names.find()
    names.find()
    assert [topic for topic, _ in names.asked] == ["T"]
    assert names.told == []
    names.answer(route())

    assert names.told == [queues(), queues()]


def test_a_cached_route_is_returned_at_once() -> None:
    names = Names()
    names.find()
    names.answer(route())
    names.find(FRESH_FOR)

    assert names.told == [queues(), queues()]
    assert names.asked == []


def test_an_old_route_is_returned_while_it_is_refreshed() -> None:
    names = Names()
    names.find()
    names.answer(route())
    names.find(FRESH_FOR + 1)
    names.find(FRESH_FOR + 1)
    assert names.told == [queues()] * 3
    assert len(names.asked) == 1
    names.answer(route(5))
    names.find(FRESH_FOR + 2)

    assert names.told[-1] == queues(5)


def test_a_topic_without_a_route_is_asked_for_each_time() -> None:
    names = Names()
    names.find()
    names.answer(None)
    names.find()

    assert names.told == [None]
    assert len(names.asked) == 1


def test_a_route_that_is_gone_is_forgotten() -> None:
    names = Names()
    names.find()
    names.answer(route())
    names.find(FRESH_FOR + 1)
    names.answer(None)
    names.find(FRESH_FOR + 2)

    assert names.told == [queues(), queues()]
    assert len(names.asked) == 1


def test_queues_that_may_not_be_read_are_left_out() -> None:
    names = Names()
    names.find()
    names.answer(route(perm=2))

    assert names.told == [frozenset()]


def test_a_route_with_too_many_queues_is_none() -> None:
    names = Names()
    names.find()
    names.answer(route(MAX_ROUTE_QUEUES + 1))

    assert names.told == [None]


def test_a_broker_without_name_servers_knows_no_route() -> None:
    told: list[Queues | None] = []
    RouteCache().find("T", 0.0, told.append)

    assert told == [None]
