"""A broker process that is asked for more than it can do: nobody starves, memory ends somewhere."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests import reading, sending
from tests.cluster.raw import RawClient, send_header

MIB = 1024 * 1024
PATIENT = {"brokerFastFailureEnable": False}
"""Nothing is refused for having waited: a broker may get no processor while requests lie in it."""
QUEUE = MessageQueue("load", "broker-0", 0)


def memory(pid: int) -> int:
    """Return the bytes of memory a process has for itself; mapped files are not its own."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def frames(count: int, body: bytes, mark: str) -> bytes:
    """Return that many sends in one piece."""
    header = send_header(QUEUE, mark)
    code = RequestCode.SEND_MESSAGE_V2
    return b"".join(Command.request(code, each, header, body).encode() for each in range(count))


def position(answer: Command) -> int:
    """Return where in the log a message is: the order in which a broker took them."""
    assert answer.code == 0, answer.remark
    return int(answer.header(sending.SendResponse).msg_id[-16:], 16)


def test_ten_thousand_pipelined_requests_do_not_make_another_client_wait() -> None:
    """The log tells the order: everything lies at the broker's door before it looks.

    Four connections bring 10 000 sends each. One more brings a single send, and its message is
    stored among the first of theirs, behind as many as a few turns hold.
    """
    flood = frames(10_000, b"flood", "flood")
    with Cluster(in_process=False, config=PATIENT) as cluster:
        cluster.create_topic(QUEUE.topic, 1)
        process = cluster.brokers["broker-0"]
        address, pid = process.address, process.pid
        assert pid is not None
        clients = [RawClient(address) for _ in range(4)]
        with RawClient(address) as other:
            first = position(other.call(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "o"), b"o"))
            os.kill(pid, signal.SIGSTOP)
            try:
                rest = [fill(each, flood) for each in clients]
                other.send(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "o"), b"o")
            finally:
                os.kill(pid, signal.SIGCONT)
            writers = [
                threading.Thread(target=each.socket.sendall, args=(data,))
                for each, data in zip(clients, rest, strict=True)
            ]
            for writer in writers:
                writer.start()
            mine = position(other.receive()) - first
            theirs = [[position(each.receive()) - first for _ in range(10_000)] for each in clients]
            for writer in writers:
                writer.join(20)
            before_me = [sum(place < mine for place in places) for places in theirs]
            assert all(before <= 4 * 64 for before in before_me), before_me
            halves = [places[5_000] for places in theirs]
            lasts = [places[-1] for places in theirs]
            assert max(halves) < min(lasts)  # they had their turns beside each other, too
        for each in clients:
            each.socket.close()


def fill(client: RawClient, data: bytes) -> bytes:
    """Write as much as the sockets of both ends take; give the rest."""
    sent = 0
    client.socket.setblocking(False)
    try:
        while sent < len(data):
            sent += client.socket.send(memoryview(data)[sent : sent + 65536])
    except BlockingIOError:
        pass
    client.socket.settimeout(60.0)
    assert sent > 100_000
    return data[sent:]


def test_a_client_that_reads_no_answers_costs_little_and_harms_nobody() -> None:
    """It asks for 4 GB; what it has not read waits on the disk, not in memory."""
    with Cluster(in_process=False) as cluster:
        cluster.create_topic(QUEUE.topic, 1)
        process = cluster.brokers["broker-0"]
        address, pid = process.address, process.pid
        assert pid is not None
        with RawClient(address) as deaf, RawClient(address) as other:
            for _ in range(4):
                other.call(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "k"), bytes(MIB))
            before = memory(pid)
            pull = reading.PullRequest(
                consumer_group="g",
                topic=QUEUE.topic,
                queue_id=0,
                queue_offset=0,
                max_msg_nums=32,
                sys_flag=4,
                commit_offset=0,
                suspend_timeout_millis=0,
                subscription="*",
                sub_version=0,
                expression_type="TAG",
                max_msg_bytes=8 * MIB,
            )
            frame = Command.request(RequestCode.PULL_MESSAGE, 1, pull).encode()
            deaf.socket.sendall(frame * 1000)
            peak = 0
            for _ in range(300):
                answer = other.call(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "k"), b"x")
                assert answer.code == 0
                peak = max(peak, memory(pid))
            assert peak - before < 48 * MIB
            for _ in range(40):  # it was only slow: what it asked for comes after all
                assert len(deaf.receive().body) > 4 * MIB


@contextmanager
def slow_broker(
    directory: Path, sync: float, rate: float, *settings: str
) -> Iterator[tuple[str, int]]:
    """Run a broker on a slow disk; give its address and process id."""
    command = [sys.executable, "-m", "tests.cluster.slow_broker", str(directory)]
    with subprocess.Popen(
        [*command, str(sync), str(rate), *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1], process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("sync", "rate", "flush"),
    [(1.0, 0, "SYNC_FLUSH"), (0.25, 60 * MIB, "ASYNC_FLUSH")],
    ids=["slow to sync", "slow to write"],
)
def test_memory_is_bounded_when_senders_are_faster_than_the_disk(
    tmp_path: Path, sync: float, rate: float, flush: str
) -> None:
    """160 MiB come as fast as sockets take them; a broker that gathered them would show it.

    What may wait for a sync is limited, and more is refused with code 2; a disk that is slow to
    take bytes holds the senders back.
    """
    settings = [f"flushDiskType={flush}", "maxUnsyncedBytes=8388608", "syncFlushTimeout=60000"]
    answers: list[list[int]] = [[] for _ in range(4)]

    def send(address: str, codes: list[int]) -> None:
        with RawClient(address, timeout=60.0) as client:
            part = frames(160, bytes(256 * 1024), "k")
            writer = threading.Thread(target=client.socket.sendall, args=(part,))
            writer.start()
            codes += [client.receive().code for _ in range(160)]
            writer.join(20)

    with slow_broker(tmp_path, sync, rate, *settings) as (address, pid):
        with RawClient(address) as client:
            assert client.call(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "k"), b"x").code == 0
        before = memory(pid)
        threads = [threading.Thread(target=send, args=(address, codes)) for codes in answers]
        for thread in threads:
            thread.start()
        peak = 0
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, memory(pid))
            threads[0].join(0.01)
        for thread in threads:
            thread.join()
        with RawClient(address) as client:  # once it is synced, there is room again
            after = client.call(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "k"), b"x").code
    codes = [code for each in answers for code in each]
    assert len(codes) == 640
    assert set(codes) <= {0, 2}
    assert codes.count(0) >= 32  # what may wait; the rest may have come before the first sync
    assert after == 0
    if flush == "SYNC_FLUSH":
        assert codes.count(2) > 100
    assert peak - before < 48 * MIB
