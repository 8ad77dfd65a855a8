"""A client of plain sockets and frames, for tests that must not depend on our own clients."""

import socket
import time
from collections.abc import Iterator
from typing import Self

from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage, RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.header import Header
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests import reading, sending


class RawClient:
    """One connection; requests may be pipelined."""

    def __init__(self, address: str, timeout: float = 30.0) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self._reader = FrameReader()
        self._waiting: list[Command] = []
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, code: RequestCode, header: Header | None = None, body: bytes = b"") -> int:
        """Send a request without waiting; give its number."""
        self._opaque += 1
        self.socket.sendall(Command.request(code, self._opaque, header, body).encode())
        return self._opaque

    def receive(self) -> Command:
        """Return the next frame that comes; raises OSError when the peer is gone."""
        while not self._waiting:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionResetError("closed by the peer")
            self._waiting += map(read_command, self._reader.feed(data))
        return self._waiting.pop(0)

    def receive_all(self) -> list[Command]:
        """Return the next frame that comes, and all that came with it."""
        found = [self.receive(), *self._waiting]
        self._waiting.clear()
        return found

    def call(self, code: RequestCode, header: Header | None = None, body: bytes = b"") -> Command:
        """Send a request and give its answer."""
        opaque = self.send(code, header, body)
        while True:
            answer = self.receive()
            if answer.is_response and answer.opaque == opaque:
                return answer


def send_header(queue: MessageQueue, key: str, group: str = "raw") -> sending.SendRequestV2:
    return sending.SendRequestV2(
        producer_group=group,
        topic=queue.topic,
        default_topic="TBW102",
        default_topic_queue_nums=8,
        queue_id=queue.queue_id,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        properties=encode_properties({"UNIQ_KEY": key, "KEYS": key, "TAGS": "t"}).decode(),
        reconsume_times=0,
        unit_mode=False,
        batch=False,
    )


def pull(client: RawClient, queue: MessageQueue, offset: int, group: str = "raw") -> Command:
    header = reading.PullRequest(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=256,
        sys_flag=4,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
        expression_type="TAG",
        max_msg_bytes=4 << 20,
    )
    return client.call(RequestCode.PULL_MESSAGE, header)


def everything_in(client: RawClient, queue: MessageQueue) -> Iterator[ReceivedMessage]:
    """Read a queue from its first message to its end."""
    offset = 0
    while True:
        answer = pull(client, queue, offset)
        if answer.code not in (0, 20, 21):
            return
        messages = decode_pulled(answer.body, DeliveryContext()) if answer.code == 0 else []
        yield from messages
        offset = answer.header(reading.PullResponse).next_begin_offset
