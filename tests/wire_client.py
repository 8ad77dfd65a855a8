"""The smallest blocking client there is, for tests of servers: one socket, one request at a time."""

import socket
import time
from types import TracebackType
from typing import Self

from pocketmq.model import PullFlag
from pocketmq.net import parse_address
from pocketmq.protocol import Command, DeliveryContext, RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.header import Header
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests import reading, sending

FOUND = 0


class WireClient:
    """Speaks to one address."""

    def __init__(self, address: str, timeout: float = 60.0) -> None:
        host, port = parse_address(address)
        self._socket = socket.create_connection((host, port), timeout)
        self._reader = FrameReader()
        self._opaque = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def wait_at_most(self, seconds: float) -> None:
        """Change how long an answer may take."""
        self._socket.settimeout(seconds)

    def ask(
        self, code: int, header: Header | dict[str, str] | None = None, body: bytes = b""
    ) -> Command:
        """Send a request and return its answer; raise ConnectionError if none comes."""
        self._opaque += 1
        self._socket.sendall(Command.request(code, self._opaque, header, body).encode())
        while True:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("closed by the server")
            for frame in self._reader.feed(data):
                command = read_command(frame)
                if command.is_response and command.opaque == self._opaque:
                    return command

    def send(self, topic: str, body: bytes, queue: int = 0) -> int:
        """Store a message and give its offset; the topic is made if it is new."""
        header = sending.SendRequest(
            producer_group="tests",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue,
            sys_flag=0,
            born_timestamp=int(time.time() * 1000),
            flag=0,
            properties="",
        )
        answer = self.ask(RequestCode.SEND_MESSAGE, header, body)
        assert answer.code == 0, answer.remark
        return answer.header(sending.SendResponse).queue_offset

    def bodies(self, topic: str, queue: int = 0) -> list[bytes]:
        """Read a queue from its start, up to 32 messages."""
        header = reading.PullRequest(
            consumer_group="tests",
            topic=topic,
            queue_id=queue,
            queue_offset=0,
            max_msg_nums=32,
            sys_flag=int(PullFlag.SUBSCRIPTION),
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
            expression_type="TAG",
        )
        answer = self.ask(RequestCode.PULL_MESSAGE, header)
        if answer.code != FOUND:
            return []
        return [message.body for message in decode_pulled(answer.body, DeliveryContext())]
