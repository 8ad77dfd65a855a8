"""Members that only talk: they tell brokers that they are there, and whoever asks what they hold.

Real peers on real sockets, as brokers and tools see them, without consuming anything. So a group
may have ten thousand queues, hold them as no strategy would, or fall silent.
"""

import selectors
import socket
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from pocketmq.model import ConsumerData, ConsumeType, MessageModel, MessageQueue, Subscription
from pocketmq.net import parse_address
from pocketmq.protocol import Command, encode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.requests import client_calls, membership

ACTIVE = {client_calls.PROP_CONSUME_TYPE: "CONSUME_ACTIVELY"}
PUSH = {client_calls.PROP_CONSUME_TYPE: "CONSUME_PASSIVELY"}


class _Line:
    """One connection of a member to a broker."""

    def __init__(self, member: str, address: str) -> None:
        self.member = member
        self.socket = socket.create_connection(parse_address(address), 10)
        self.reader = FrameReader()


class SpokenGroup:
    """A group of such members; what they tell can change at any time."""

    def __init__(
        self,
        group: str,
        topics: Iterable[str],
        brokers: Iterable[str],
        *,
        model: MessageModel = MessageModel.CLUSTERING,
    ) -> None:
        self._group = group
        self._topics = tuple(topics)
        self._brokers = tuple(brokers)
        self._model = model
        self._told: dict[str, bytes | None] = {}
        self._lines: list[_Line] = []
        self._selector = selectors.DefaultSelector()
        self._ended = threading.Event()
        self._talking = threading.Thread(target=self._talk)

    def __enter__(self) -> Self:
        self._talking.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._talking.join()
        for line in self._lines:
            line.socket.close()
        self._selector.close()

    def join(
        self, member: str, queues: Iterable[MessageQueue] = (), properties: dict[str, str] = PUSH
    ) -> None:
        """Let a member join at every broker, holding these queues; they all know it then."""
        self.hold(member, queues, properties)
        data = ConsumerData(
            group_name=self._group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=self._model,
            subscription_data_set=[Subscription(topic=topic) for topic in self._topics],
        )
        body = encode_body(membership.Heartbeat(client_id=member, consumer_data_set=[data]))
        for broker in self._brokers:
            line = _Line(member, broker)
            self._greet(line, body)
            self._lines.append(line)
            self._selector.register(line.socket, selectors.EVENT_READ, line)

    def hold(
        self, member: str, queues: Iterable[MessageQueue], properties: dict[str, str] = PUSH
    ) -> None:
        """Make a member report from now on that it owns these queues."""
        now = int(time.time() * 1000)
        held = client_calls.ProcessQueueBody(last_pull_timestamp=now, last_consume_timestamp=now)
        self._told[member] = encode_body(
            client_calls.RunningInfo(
                properties=properties,
                subscription_set=[Subscription(topic=topic) for topic in self._topics],
                mq_table=dict.fromkeys(queues, held),
            )
        )

    def fall_silent(self, member: str) -> None:
        """Stop the responses of a member that stays connected."""
        self._told[member] = None

    def leave(self, member: str) -> None:
        """Cut a member's connections, as the end of its process would."""
        for line in [line for line in self._lines if line.member == member]:
            self._lines.remove(line)
            line.socket.shutdown(socket.SHUT_RDWR)

    def _greet(self, line: _Line, heartbeat: bytes) -> None:
        """Register a member with a broker, and wait for its response."""
        line.socket.sendall(Command.request(Code.HEART_BEAT, 1, body=heartbeat).encode())
        answered = False
        while not answered:
            data = line.socket.recv(65536)
            assert data, "the broker has closed the connection"
            for command in map(read_command, line.reader.feed(data)):
                answered |= command.is_response
                self._hear(line, command)

    def _talk(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._selector.select(0.05):
                line: _Line = key.data
                try:
                    data = line.socket.recv(65536)
                except ConnectionResetError:  # its broker was killed
                    data = b""
                if not data:
                    self._selector.unregister(line.socket)
                    line.socket.close()
                    continue
                for frame in line.reader.feed(data):
                    self._hear(line, read_command(frame))

    def _hear(self, line: _Line, command: Command) -> None:
        told = self._told.get(line.member)
        if command.code == Code.GET_CONSUMER_RUNNING_INFO and not command.is_response and told:
            line.socket.sendall(command.reply(0, body=told).encode())
