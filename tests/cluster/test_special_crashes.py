"""A broker killed again and again amid transactions and timed messages keeps its promises."""

import random
import threading
import time
from collections.abc import Callable, Sized
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.embedded.settings import Setting
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage, RequestCode
from pocketmq.protocol.header import Header
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.requests import sending
from tests.cluster.raw import RawClient, everything_in, send_header
from tests.server_process import wait_for

ROUNDS = 4
LEAST = 50
"""What a client has to get done in each round."""
QUEUE = MessageQueue("special", "broker-0", 0)

NUMBERS = count(1)

Work = Callable[[RawClient, int], None]


def with_properties(key: str, sys_flag: int, **properties: str) -> sending.SendRequestV2:
    text = encode_properties({"UNIQ_KEY": key} | properties).decode()
    header = send_header(QUEUE, key).to_v1()
    fields = {name: getattr(header, name) for name in header.__struct_fields__}
    return sending.SendRequestV2(**fields | {"properties": text, "sys_flag": sys_flag})


def work_until_killed(cluster: Cluster, work: Work, done: Sized) -> None:
    """Let a client work on a broker that dies at random moments, and comes back."""
    chance = random.Random(11)

    def run(address: str) -> None:
        with suppress(OSError), RawClient(address) as client:
            while True:
                work(client, next(NUMBERS))

    for _ in range(ROUNDS):
        thread = threading.Thread(target=run, args=(cluster.brokers["broker-0"].address,))
        before = len(done)
        thread.start()
        wait_for(lambda before=before: len(done) > before + LEAST, "work that is done", 60)  # type: ignore[misc]
        threading.Event().wait(chance.random() * 0.3)  # a random moment, not a wait for one
        cluster.kill("broker-0")
        thread.join(20)
        assert not thread.is_alive()
        cluster.restart("broker-0")


def ask(
    client: RawClient, code: RequestCode, header: Header, body: bytes = b""
) -> sending.SendResponse:
    answer = client.call(code, header, body)
    assert answer.code == 0, answer.remark
    return answer.header(sending.SendResponse)


def found(cluster: Cluster) -> list[ReceivedMessage]:
    with RawClient(cluster.brokers["broker-0"].address) as client:
        return list(everything_in(client, QUEUE))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_no_commit_is_lost_and_none_is_seen_twice(tmp_path: Path, flush: str) -> None:
    """After a crash the producer ends all its transactions once more, as if asked about them."""
    halves: dict[str, sending.EndTransactionRequest] = {}
    fates: dict[str, bool] = {}

    def transact(client: RawClient, number: int) -> None:
        key = f"t{number}"
        header = with_properties(key, 4, TRAN_MSG="true", PGROUP="raw")
        stored = ask(client, RequestCode.SEND_MESSAGE_V2, header, key.encode())
        fate = 8 if number % 3 else 12
        halves[key] = sending.EndTransactionRequest(
            producer_group="raw",
            tran_state_table_offset=stored.queue_offset,
            commit_log_offset=int(stored.msg_id[-16:], 16),
            commit_or_rollback=fate,
            from_transaction_check=True,
            msg_id=key,
        )
        if number % 5:
            assert client.call(RequestCode.END_TRANSACTION, halves[key]).code == 0
            fates[key] = fate == 8

    settings: dict[str, Setting] = {"flushDiskType": flush, "transactionCheckInterval": 100_000}
    settings["syncFlushTimeout"] = 60_000  # a disk that has much to write may need long
    with Cluster(data=tmp_path, in_process=False, config=settings) as cluster:
        cluster.create_topic("special", 1)
        for _ in range(2):
            work_until_killed(cluster, transact, fates)
            kept = [message.body.decode() for message in found(cluster)]
            assert len(set(kept)) == len(kept)
            assert {key for key, committed in fates.items() if committed} <= set(kept)
            assert not {key for key, committed in fates.items() if not committed} & set(kept)
            with RawClient(cluster.brokers["broker-0"].address) as client:
                for key, end in halves.items():
                    assert client.call(RequestCode.END_TRANSACTION, end).code == 0, key
        bodies = [message.body.decode() for message in found(cluster)]
    wanted = sorted(key for key, end in halves.items() if end.commit_or_rollback == 8)
    assert sorted(bodies) == wanted
    assert len(wanted) > 100


@pytest.mark.timeout(180)
def test_timed_messages_come_once_and_in_time_however_often_a_broker_dies(tmp_path: Path) -> None:
    due: dict[str, int] = {}
    recalled: dict[str, int] = {}
    asked_back: set[str] = set()
    """Also those whose recall was carried out by a broker that died before it could say so."""
    tried: set[str] = set()

    def send(client: RawClient, number: int) -> None:
        key = f"t{number}"
        delay = (50, 400, 1500, 4000)[number % 4]
        moment = int(time.time() * 1000) + delay
        tried.add(key)
        header = with_properties(key, 0, TIMER_DELIVER_MS=str(moment))
        stored = ask(client, RequestCode.SEND_MESSAGE_V2, header, b"%d" % moment)
        due[key] = moment
        if number % 16 == 7:  # due in four seconds
            asked_back.add(key)
            back = sending.RecallRequest(topic="special", recall_handle=stored.recall_handle or "")
            if client.call(RequestCode.RECALL_MESSAGE, back).code == 0:
                recalled[key] = moment

    with Cluster(data=tmp_path, in_process=False) as cluster:
        cluster.create_topic("special", 1)
        work_until_killed(cluster, send, due)
        deadline = time.monotonic() + 60
        wanted = set(due) - asked_back
        keys: list[str] = []
        while not wanted <= set(keys) and time.monotonic() < deadline:
            threading.Event().wait(0.1)
            messages = found(cluster)
            keys = [message.properties["UNIQ_KEY"] for message in messages]
    assert wanted <= set(keys) <= tried
    assert len(set(keys)) == len(keys)
    assert not set(recalled) & set(keys)
    assert len(recalled) > 5
    early = [m for m in messages if m.store_timestamp_ms < int(m.body)]
    assert early == []
