"""A thousand connections and two hundred groups at once."""

import threading

from pocketmq.embedded import Cluster
from pocketmq.model.groups import ConsumerData, ProducerData, Subscription
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol import RequestCode, decode_body, encode_body
from pocketmq.protocol.requests.membership import ConsumerIds, GetConsumerListRequest, Heartbeat
from tests.cluster.raw import RawClient, send_header

GROUPS = 200
MEMBERS = 5


def heartbeat(group: str, member: str) -> bytes:
    subscription = Subscription(topic="shared", sub_version=1)
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=[subscription],
    )
    return encode_body(
        Heartbeat(
            client_id=member,
            consumer_data_set=[consumer],
            producer_data_set=[ProducerData(group_name="CLIENT_INNER_PRODUCER")],
        )
    )


def members_of(client: RawClient, group: str) -> set[str]:
    header = GetConsumerListRequest(consumer_group=group)
    answer = client.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
    return (
        set(decode_body(answer.body, ConsumerIds).consumer_id_list) if answer.code == 0 else set()
    )


def test_a_thousand_members_of_two_hundred_groups_are_served_and_let_go() -> None:
    with Cluster(in_process=False) as cluster:
        cluster.create_topic("shared", 8)
        address = cluster.brokers["broker-0"].address
        clients = [RawClient(address) for _ in range(GROUPS * MEMBERS)]
        try:
            for number, client in enumerate(clients):
                group, member = f"g{number % GROUPS}", f"m{number}"
                assert client.call(RequestCode.HEART_BEAT, None, heartbeat(group, member)).code == 0
            for number in range(GROUPS):
                expected = {f"m{number + GROUPS * lane}" for lane in range(MEMBERS)}
                assert members_of(clients[number], f"g{number}") == expected
            queue = MessageQueue("shared", "broker-0", 1)
            for number, client in enumerate(clients):
                client.send(RequestCode.SEND_MESSAGE_V2, send_header(queue, f"k{number}"), b"x")
            answered = 0
            for client in clients:
                answer = client.receive()
                while not answer.is_response:  # notifications of changed groups come in between
                    answer = client.receive()
                answered += answer.code == 0
            assert answered == len(clients)
        finally:
            for client in clients[1:]:
                client.socket.close()
        deadline = threading.Event()
        for _ in range(200):
            if members_of(clients[0], "g0") == {"m0"} and not members_of(clients[0], "g1"):
                break
            deadline.wait(0.05)
        assert members_of(clients[0], "g0") == {"m0"}
        assert members_of(clients[0], "g1") == set()
        clients[0].socket.close()
