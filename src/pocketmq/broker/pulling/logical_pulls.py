"""Answers to pulls of a logical queue of a static topic: offsets converted, ranges followed."""

from collections.abc import Sequence

import msgspec

from pocketmq.balance.static_topics.answers import Pulled, logical_answer
from pocketmq.model.topics import MappedRange
from pocketmq.protocol import Command
from pocketmq.protocol.requests.reading import PullResponse


class LogicalPull(msgspec.Struct, frozen=True):
    """A pull of a logical queue: its ranges, and the one that is read."""

    parts: Sequence[MappedRange]
    part: MappedRange
    asked: int
    """The offset in the physical queue."""

    def answer(
        self, request: Command, pulled: Pulled, remark: str | None, body: bytes, more: PullResponse
    ) -> Command:
        """Build the response from what the physical queue answered; flags are those of `more`."""
        found = logical_answer(self.parts, self.part, self.asked, pulled)
        header = msgspec.structs.replace(
            more,
            next_begin_offset=found.next_offset,
            min_offset=found.min_offset,
            max_offset=found.max_offset,
            offset_delta=found.delta,
        )
        return request.reply(found.code, remark, header, body)
