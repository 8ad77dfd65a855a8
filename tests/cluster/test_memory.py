"""Peers that make a server hold bytes: the sum has a limit, and others are served meanwhile.

Real processes and sockets; memory is what the kernel says the process has for itself.
"""

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.reading import PullRequest
from tests.cluster.raw import RawClient, send_header
from tests.cluster.test_overload import memory
from tests.memory_folder import memory_folder
from tests.own_time import own_time
from tests.server_process import ServerProcess, wait_for

MIB = 1024 * 1024
QUEUE = MessageQueue("memory", "broker-0", 0)
BROKER_LIMIT = 128 * MIB
NAME_SERVER_LIMIT = 64 * MIB
SLACK = 64 * MIB
"""For buffers that grow by an eighth, one of them copied when it does, the copies of one message on
its way, and an allocator that keeps pages: up to 16 MiB each."""
PULL = PullRequest(
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


class Strangers:
    """Connections that send what they are given as fast as they may, and never read."""

    def __init__(self, address: str, count: int, data: bytes) -> None:
        host, port = address.rsplit(":", 1)
        self._sockets = [socket.socket() for _ in range(count)]
        for each in self._sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            each.connect((host, int(port)))
        self._data = memoryview(data)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.quiet = 0.0
        """When they last could send something."""
        self.sent = 0
        """Bytes that they have sent in all."""
        self.cut_off = 0
        """How many the server has cut off."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(10)
        for each in self._sockets:
            each.close()

    def _run(self) -> None:
        left = dict.fromkeys(self._sockets, self._data)
        with selectors.DefaultSelector() as selector:
            for each in self._sockets:
                each.setblocking(False)
                selector.register(each, selectors.EVENT_WRITE)
            while not self._stopped.wait(0.001):
                for key, _ in selector.select(0.05):
                    stranger = key.fileobj
                    assert isinstance(stranger, socket.socket)
                    try:
                        sent = stranger.send(left[stranger][: 256 * 1024])
                    except BlockingIOError:
                        continue
                    except OSError:
                        self.cut_off += 1
                        selector.unregister(stranger)
                        continue
                    self.sent += sent
                    left[stranger] = left[stranger][sent:]
                    self.quiet = time.monotonic()
                    if not left[stranger]:
                        selector.unregister(stranger)


def send(client: RawClient, body: bytes) -> float:
    """Send a message and return how long its answer took, in processes' own time."""
    began = own_time()
    answer = client.call(RequestCode.SEND_MESSAGE_V2, send_header(QUEUE, "honest"), body)
    assert answer.code == 0, answer.remark
    return own_time() - began


def peak_while(pid: int, strangers: Strangers, work: Callable[[], None]) -> int:
    """Work ten times at least, until the strangers can send no more; return the peak.

    Those that are cut off make room for others, which send for minutes. Then it is enough that they
    have sent more than the server may hold. A server without a limit cuts nobody off.
    """
    peak = rounds = 0
    deadline = own_time() + 30
    while rounds < 10 or time.monotonic() - strangers.quiet < 0.5:
        if rounds >= 10 and strangers.cut_off and strangers.sent > BROKER_LIMIT + SLACK:
            break
        assert own_time() < deadline, "the strangers go on"
        work()
        rounds += 1
        peak = max(peak, memory(pid))
    return peak


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder in memory: senders may wait for a disk, but not for strangers."""
    with memory_folder() as made:
        yield made


def test_unfinished_frames_of_strangers_have_a_limit_and_delay_nobody(folder: Path) -> None:
    """60 frames of 16 MB without their last byte would be 930 MB."""
    data = (16 * MIB - 4).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(16 * MIB - 9)
    slowest = 0.0
    with Cluster(in_process=False, data=folder) as cluster:
        cluster.create_topic(QUEUE.topic, 1)
        process = cluster.brokers["broker-0"]
        assert process.pid is not None
        with RawClient(process.address) as small, RawClient(process.address) as large:

            def work() -> None:
                nonlocal slowest
                send(large, bytes(4 * MIB - 1000))
                slowest = max(slowest, *(send(small, b"x") for _ in range(20)))

            work()
            slowest = 0.0
            before = memory(process.pid)
            with Strangers(process.address, 60, data) as strangers:
                wait_for(lambda: strangers.quiet, "the first bytes")
                peak = peak_while(process.pid, strangers, work)
            assert peak - before < BROKER_LIMIT + SLACK
            assert slowest < 1.0  # seconds; a small request waits for no frame of a stranger


def test_pullers_that_never_read_have_a_limit_and_delay_no_sender(folder: Path) -> None:
    """30 clients that ask for gigabytes; each got 36 MB, which is over 1 GB in all."""
    frame = Command.request(RequestCode.PULL_MESSAGE, 1, PULL).encode()
    with Cluster(in_process=False, data=folder) as cluster:
        cluster.create_topic(QUEUE.topic, 1)
        process = cluster.brokers["broker-0"]
        assert process.pid is not None
        with RawClient(process.address) as honest:
            for _ in range(9):
                send(honest, bytes(MIB))

            def work() -> None:
                send(honest, b"x")
                send(honest, bytes(4 * MIB - 1000))
                pulled = honest.call(RequestCode.PULL_MESSAGE, PULL)
                assert len(pulled.body) > MIB  # one message at least

            work()
            before = memory(process.pid)
            with Strangers(process.address, 30, frame * 100) as strangers:
                wait_for(lambda: strangers.quiet, "the first bytes")
                peak = peak_while(process.pid, strangers, work)
            assert peak - before < BROKER_LIMIT + SLACK


def test_unfinished_frames_at_a_name_server_have_a_limit() -> None:
    """20 frames of 16 MB would be 334 MB."""
    data = (16 * MIB - 4).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(16 * MIB - 9)
    with ServerProcess("namesrv", "--port", "0") as server:
        pid = server.process.pid
        with RawClient(server.namesrv) as client:

            def work() -> None:
                assert client.call(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0

            work()
            before = memory(pid)
            with Strangers(server.namesrv, 20, data) as strangers:
                wait_for(lambda: strangers.quiet, "the first bytes")
                peak = peak_while(pid, strangers, work)
            assert peak - before < NAME_SERVER_LIMIT + SLACK
