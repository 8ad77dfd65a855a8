"""Answers by template: frequent answers are not built field by field.

Owns the bytes of answers to sends and pulls in the JSON serialisation; the binary one, which few
clients use, goes the general way. The fields are Java's (5.x), all of them in every answer.
"""

import re
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from pocketmq.errors import ResponseCode
from pocketmq.model.property_names import MSG_REGION, TRACE_ON
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader, SerializeType, encode_frame
from pocketmq.protocol.peers import CURRENT_VERSION, Language
from pocketmq.protocol.requests.reading import PullResponse
from pocketmq.protocol.requests.sending import SendResponse

_PREFIX = struct.Struct(">II").pack
_CODE = struct.Struct(">h").pack
_JSON = int(SerializeType.JSON)
_LANGUAGE = Language.PYTHON.name
_SUCCESS_JSON = b'{"code":0,'
_HEADER_AT = 8
_VALUE = re.compile(rb"%d|%b|%016X")


def _quoted(text: str) -> str:
    """Write a JSON string."""
    return msgspec.json.encode(text).decode()


class SendAnswers:
    """Answers to sends, as templates for one broker's address and region."""

    __slots__ = (
        "_host",
        "_many",
        "_one",
        "_recallable",
        "_region",
        "_trace_on",
        "pieces",
        "store_host",
    )

    def __init__(self, region: str, store_host: bytes, *, trace_on: bool) -> None:
        self._region = region
        self._trace_on = trace_on
        self.store_host = store_host
        self._host = store_host.hex().upper()
        trace = "true" if trace_on else "false"
        region_text = _quoted(region).replace("%", "%%")
        start = '{"code":0,"extFields":{"queueId":"%d","transactionId":"%b",'
        shared = f'"{TRACE_ON}":"{trace}","{MSG_REGION}":{region_text},"msgId":"{self._host}'
        end = (
            '","queueOffset":"%d"},"flag":1,'
            f'"language":"{_LANGUAGE}","opaque":%d,'
            f'"serializeTypeCurrentRPC":"JSON","version":{CURRENT_VERSION}}}'
        )
        self._one = f"{start}{shared}%016X{end}".encode()
        self.pieces = [part.replace(b"%%", b"%") for part in _VALUE.split(self._one)]
        """The header for one stored message around its five values; see `stored`."""
        self._many = f"{start}{shared}%b{end}".encode()
        handle = start.replace('"transactionId"', '"recallHandle":"%b","transactionId"')
        self._recallable = f"{handle}{shared}%016X{end}".encode()

    def stored(
        self, request: Command, queue_id: int, offset: int, position: int, unique_key: str
    ) -> bytes:
        """Return the whole frame for one stored message; `unique_key` may be any text."""
        if request.serialize != _JSON or not (unique_key.isalnum() and unique_key.isascii()):
            return self._general(request, queue_id, offset, self.identity(position), unique_key)
        key = unique_key.encode()
        header = self._one % (queue_id, key, position, offset, request.opaque)
        size = len(header)
        return _PREFIX(size + 4, size) + header

    def stored_batch(
        self,
        request: Command,
        queue_id: int,
        offset: int,
        positions: Sequence[int],
        unique_key: str | None,
    ) -> bytes:
        """Return the frame for a batch: an id for each message, the first one's offset.

        `unique_key` is the batch's own, None if it has none, as from 4.x clients.
        """
        places = array("Q", positions)
        if sys.byteorder == "little":
            places.byteswap()
        digits = places.tobytes().hex(",", 8).upper()
        ids = digits.replace(",", "," + self._host)
        plain = unique_key is not None and unique_key.isalnum() and unique_key.isascii()
        if unique_key is None or not plain or request.serialize != _JSON:
            return self._general(request, queue_id, offset, self._host + ids, unique_key)
        fields = (queue_id, unique_key.encode(), ids.encode(), offset, request.opaque)
        return encode_frame(_JSON, self._many % fields)

    def inner_batch(
        self, request: Command, queue_id: int, offset: int, position: int, unique_key: str
    ) -> bytes:
        """Return the frame for a batch that is one record: one id, and the batch's own key.

        By the key a 5.x producer sees that it is one.
        """
        header = SendResponse(
            msg_id=self.identity(position),
            queue_id=queue_id,
            queue_offset=offset,
            transaction_id=unique_key,
            batch_uniq_id=unique_key,
            region=self._region,
            trace_on=self._trace_on,
        )
        return request.reply(ResponseCode.SUCCESS, None, header).encode()

    def special(
        self,
        request: Command,
        queue_id: int,
        offset: int,
        position: int,
        *,
        unique_key: str,
        recall_handle: str | None,
    ) -> bytes:
        """Return the frame for a message that went elsewhere first, such as a delayed one."""
        if recall_handle is None:
            return self.stored(request, queue_id, offset, position, unique_key)
        if request.serialize != _JSON or not (unique_key.isalnum() and unique_key.isascii()):
            identity = self.identity(position)
            return self._general(request, queue_id, offset, identity, unique_key, recall_handle)
        handle = recall_handle.encode()
        fields = (queue_id, handle, unique_key.encode(), position, offset, request.opaque)
        return encode_frame(_JSON, self._recallable % fields)

    def refused(self, request: Command, code: int, remark: str | None) -> Command:
        """Build a refusal; clients read region and trace switch in it, too (seen in Go)."""
        trace = "true" if self._trace_on else "false"
        return request.reply(code, remark, {TRACE_ON: trace, MSG_REGION: self._region})

    def identity(self, position: int) -> str:
        """Return the id of the message at a position of the log."""
        return f"{self._host}{position:016X}"

    def _general(  # noqa: PLR0917 - the answer's fields
        self,
        request: Command,
        queue_id: int,
        offset: int,
        identity: str,
        unique_key: str | None,
        recall_handle: str | None = None,
    ) -> bytes:
        header = SendResponse(
            msg_id=identity,
            queue_id=queue_id,
            queue_offset=offset,
            transaction_id=unique_key,
            recall_handle=recall_handle,
            region=self._region,
            trace_on=self._trace_on,
        )
        return request.reply(ResponseCode.SUCCESS, None, header).encode()


_DONE = (
    f'{{"code":0,"flag":1,"language":"{_LANGUAGE}","opaque":%d,'
    f'"serializeTypeCurrentRPC":"JSON","version":{CURRENT_VERSION}}}'
).encode()


def success(request: Command) -> bytes:
    """Return the frame that says that something was done, and no more."""
    if request.serialize != _JSON:
        return request.reply(ResponseCode.SUCCESS).encode()
    return done(request.opaque)


def done(opaque: int) -> bytes:
    """Return the same frame as JSON, by the request's number."""
    header = _DONE % opaque
    size = len(header)
    return _PREFIX(size + 4, size) + header


def answer_code(answer: Command | bytes) -> int:
    """Return the code of an answer, whole frame or not."""
    if isinstance(answer, Command):
        return answer.code
    if answer[4] == _JSON:
        start = _HEADER_AT + len(_SUCCESS_JSON) - 2  # behind {"code":
        return int(answer[start : answer.find(b",", start)])
    return int.from_bytes(answer[_HEADER_AT : _HEADER_AT + 2], "big")


def with_code(frame: bytes, code: int) -> bytes:
    """Return a frame that said success with another code, all else the same."""
    if frame[4] == _JSON:
        size = int.from_bytes(frame[5:_HEADER_AT], "big")
        header, body = frame[_HEADER_AT : _HEADER_AT + size], frame[_HEADER_AT + size :]
        changed = b'{"code":%d,' % code + header.removeprefix(_SUCCESS_JSON)
        return encode_frame(_JSON, changed, body)
    return frame[:_HEADER_AT] + _CODE(code) + frame[_HEADER_AT + 2 :]


def all_with_code(frames: bytes, code: int) -> bytes:
    """Return frames that said success, one or several side by side, with another code."""
    return b"".join([with_code(frame, code) for frame in _apart(frames)])


def answered_by(frames: bytes) -> list[Command]:
    """Return requests that frames side by side would answer: nothing of them but their numbers."""
    return [
        Command.request(RequestCode.SEND_MESSAGE_V2, read_command(each).opaque)
        for each in FrameReader(limit=len(frames)).feed(frames)
    ]


def _apart(frames: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(frames):
        end = at + 4 + int.from_bytes(frames[at : at + 4], "big")
        yield frames[at:end]
        at = end


@lru_cache(maxsize=256)
def _pull_parts(code: int, status: str, topic_flag: int, group_flag: int) -> tuple[str, str]:
    """Return the parts of an answer to a pull before and behind its numbers."""
    start = (
        f'{{"code":{code},"extFields":{{"suggestWhichBrokerId":"0","topicSysFlag":"{topic_flag}",'
        f'"groupSysFlag":"{group_flag}","nextBeginOffset":"'
    )
    end = f',"remark":"{status}","serializeTypeCurrentRPC":"JSON","version":{CURRENT_VERSION}}}'
    return start, end


def pull_answer(  # noqa: PLR0917 - the answer's fields
    request: Command,
    code: int,
    status: str,
    next_offset: int,
    min_offset: int,
    max_offset: int,
    *,
    topic_flag: int = 0,
    group_flag: int = 0,
    body_size: int = 0,
) -> bytes:
    """Return the start of a frame that answers a pull; a body of `body_size` bytes follows."""
    if request.serialize != _JSON:
        header = PullResponse(
            suggest_which_broker_id=0,
            next_begin_offset=next_offset,
            min_offset=min_offset,
            max_offset=max_offset,
            topic_sys_flag=topic_flag,
            group_sys_flag=group_flag,
        )
        frame = request.reply(code, status, header).encode()
        return (len(frame) - 4 + body_size).to_bytes(4, "big") + frame[4:]
    start, end = _pull_parts(code, status, topic_flag, group_flag)
    text = (
        f'{start}{next_offset}","minOffset":"{min_offset}","maxOffset":"{max_offset}"}},"flag":1,'
        f'"language":"{_LANGUAGE}","opaque":{request.opaque}{end}'
    ).encode()
    size = len(text)
    return _PREFIX(size + 4 + body_size, size) + text
