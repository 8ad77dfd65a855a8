"""Four hundred who pop from four queues of a broker process, and some of them die."""

import selectors
import time
from collections import Counter

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RecordView, RequestCode
from pocketmq.protocol.handles import PopHandle, read_start_offsets
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.requests.pop import AckRequest, PopRequest
from tests.cluster.raw import RawClient, send_header
from tests.cluster.test_overload import PATIENT

TOPIC, GROUP = "crowded", "crowd"
MEMBERS, QUEUES, MESSAGES, MORTAL = 400, 4, 2000, 40
PATIENCE = 60.0


def ask_for_one(member: RawClient) -> None:
    """Wait for one message, which comes back if it is not acknowledged within two seconds."""
    header = PopRequest(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=-1,
        max_msg_nums=1,
        invisible_time=2000,
        poll_time=20_000,
        born_time=int(time.time() * 1000),
        init_mode=0,
    )
    member.send(RequestCode.POP_MESSAGE, header)


def acknowledge(member: RawClient, answer: Command, message: RecordView) -> None:
    text = decode_properties(message.property_bytes).get("POP_CK")
    if text is None:
        ((queue, start),) = read_start_offsets(answer.ext["startOffsetInfo"]).items()
        text = str(
            PopHandle(
                start_offset=start,
                pop_time_ms=int(answer.ext["popTime"]),
                invisible_time_ms=int(answer.ext["invisibleTime"]),
                revive_queue_id=int(answer.ext["reviveQid"]),
                mark=queue.mark,
                broker_name="broker-0",
                queue_id=message.queue_id,
                queue_offset=message.queue_offset,
            )
        )
    handle = PopHandle.parse(text)
    header = AckRequest(
        consumer_group=GROUP,
        topic=handle.mark.real_topic(TOPIC, GROUP),
        queue_id=handle.queue_id,
        extra_info=text,
        offset=handle.queue_offset or 0,
    )
    member.send(RequestCode.ACK_MESSAGE, header)


def test_four_hundred_share_four_queues_and_what_the_dead_had_comes_back() -> None:
    with Cluster(in_process=False, config=PATIENT) as cluster:
        cluster.create_topic(TOPIC, QUEUES)
        address = cluster.brokers["broker-0"].address
        chooser = selectors.DefaultSelector()
        for number in range(MEMBERS):
            member = RawClient(address)
            chooser.register(member.socket, selectors.EVENT_READ, (number, member))
            ask_for_one(member)
        with RawClient(address) as sender:
            for number in range(MESSAGES):
                queue = MessageQueue(TOPIC, "broker-0", number % QUEUES)
                header = send_header(queue, f"k{number}")
                sender.send(RequestCode.SEND_MESSAGE_V2, header, b"%d" % number)
            for _ in range(MESSAGES):
                assert sender.receive().code == 0
            done: Counter[int] = Counter()
            shares: Counter[int] = Counter()
            lost: list[int] = []
            deadline = time.monotonic() + PATIENCE
            while len(done) < MESSAGES:
                assert time.monotonic() < deadline, f"{MESSAGES - len(done)} are missing"
                for key, _ in chooser.select(0.1):
                    number, member = key.data
                    for answer in member.receive_all():
                        if answer.code != 0 or not answer.body:
                            if "popTime" in answer.ext:
                                ask_for_one(member)
                            continue
                        message = RecordView(answer.body, next(scan_records(answer.body))[0])
                        body = int(message.stored_body)
                        if number < MORTAL:  # takes a message with it
                            lost.append(body)
                            chooser.unregister(member.socket)
                            member.socket.close()
                            break
                        acknowledge(member, answer, message)
                        done[body] += 1
                        shares[number] += 1
                        ask_for_one(member)
        for key in list(chooser.get_map().values()):
            key.data[1].socket.close()
    assert set(done) == set(range(MESSAGES))
    assert len(lost) == MORTAL
    assert len(shares) == MEMBERS - MORTAL  # nobody starves
    assert max(shares.values()) <= 10 * min(shares.values()) + 10
