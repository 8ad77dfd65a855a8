"""Figures about topics, as tools ask for them."""

from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.stats import OffsetRange, TopicStatsBody
from tests.broker.tables import Desk


def test_every_queue_of_a_topic_tells_what_it_holds() -> None:
    """Queues that can be read or written, whichever are more; those without messages hold none."""
    desk = Desk(broker_name="b")
    desk.make_topic("T", readQueueNums="1", writeQueueNums="3")
    desk.store_message("T", 1)
    desk.clock.time += 60
    desk.store_message("T", 1)
    answer = desk.ask(Code.GET_TOPIC_STATS_INFO, {"topic": "T"})

    held = OffsetRange(min_offset=0, max_offset=2, last_update_timestamp=desk.clock.now_ms())
    assert answer.code == ResponseCode.SUCCESS
    assert decode_body(answer.body, TopicStatsBody).offset_table == {
        MessageQueue("T", "b", 0): OffsetRange(),
        MessageQueue("T", "b", 1): held,
        MessageQueue("T", "b", 2): OffsetRange(),
    }


def test_there_are_no_statistics_of_an_unknown_topic() -> None:
    answer = Desk().ask(Code.GET_TOPIC_STATS_INFO, {"topic": "nobodys"})

    assert (answer.code, answer.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[nobodys] not exist",
    )
