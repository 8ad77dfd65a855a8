"""A queue at a broker of 4.9: for a time it returns a message near it, or the last one."""

from collections.abc import Collection, Sequence

import msgspec

from pocketmq.client.questions.asking import Ask
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.peers import version_number
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests import offsets, reading
from tests.client.servers import Scripted

QUEUE = MessageQueue("orders", "old", 0)
VERSION = version_number(4, 9, 7)


class OldBroker(Scripted):
    """Holds messages from an offset on, each with its store time; some cannot be read."""

    def __init__(
        self, times: Sequence[int], first: int = 0, damaged: Collection[int] = (), answer: int = 0
    ) -> None:
        super().__init__(
            {
                Code.GET_MIN_OFFSET: lambda request: self._offset(request, first),
                Code.GET_MAX_OFFSET: lambda request: self._offset(request, first + len(times)),
                Code.SEARCH_OFFSET_BY_TIMESTAMP: lambda request: self._offset(request, answer),
                Code.PULL_MESSAGE: self._pull,
                Code.HEART_BEAT: lambda request: _as_old(request.reply(0)),
                Code.UNREGISTER_CLIENT: lambda request: _as_old(request.reply(0)),
                Code.QUERY_CONSUMER_OFFSET: lambda request: _as_old(request.reply(22)),
            }
        )
        self._times = times
        self._first = first
        self._damaged = damaged

    def carry(self, asked: Ask) -> Command:
        """Answer a question without a socket."""
        return self.script[asked.code](Command.request(asked.code, 1, asked.header)) or _never()

    def _offset(self, request: Command, offset: int) -> Command:
        return _as_old(request.reply(0, ext=offsets.GetMaxOffsetResponse(offset=offset)))

    def _pull(self, request: Command) -> Command:
        asked = request.header(reading.PullRequest)
        first, end = self._first, self._first + len(self._times)
        at = asked.queue_offset
        told = reading.PullResponse(
            suggest_which_broker_id=0,
            next_begin_offset=at + 1 if at < end else end,
            min_offset=first,
            max_offset=end,
        )
        if not first <= at < end:
            return _as_old(request.reply(21 if at != end else 19, ext=told))
        if at in self._damaged:
            return _as_old(request.reply(0, ext=told, body=b"\0" * 8))
        record = Record(
            topic=b"orders",
            body=b"x",
            queue_offset=at,
            store_timestamp_ms=self._times[at - first],
            property_bytes=b"",
        )
        return _as_old(request.reply(0, ext=told, body=encode_record(record)))


def _as_old(command: Command) -> Command:
    return msgspec.structs.replace(command, version=VERSION)


def _never() -> Command:
    raise AssertionError("the broker has no answer")
