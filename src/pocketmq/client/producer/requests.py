"""A message as the bytes of a request, and a broker's response as a receipt.

Pure functions over values, for sends on a loop and on a thread's own socket alike. The header is a
template for each queue with a few values filled in, because encoding it field by field would cost
more than the rest of a send. Independent of connections and retries.
"""

import struct
from collections.abc import Callable, Sequence

import msgspec

from pocketmq.client.calls import Fields, request_name
from pocketmq.client.producer.plain_frames import ReceiptFields, SendSigning
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import ServerError, server_error
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.model.message import DEFAULT_REGION, send_status
from pocketmq.model.names import unwrap_namespace
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG
from pocketmq.protocol.header_json import REQUEST_TAIL
from pocketmq.protocol.requests.sending import SendRequestV2, SendResponse
from pocketmq.protocol.signature import SENDS, SigningUser

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)
_prefix = struct.Struct(">II").pack
_json = msgspec.json.Encoder().encode

AsCommand = Callable[[int, Fields, bytes], Command]
"""Makes a request as the client sends it, completed by its hooks (`Calls.request`)."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """A message ready to travel, to whichever queue.

    `topic` is the name on the wire. `properties` is the property text. `unique_id` names the
    message in its receipt; of a batch, that is all ids joined by commas, and `batch_id` the id of
    the batch itself.
    """

    topic: str
    body: bytes
    properties: str
    unique_id: str
    flag: int = 0
    sys_flag: int = 0
    code: int = _SEND
    messages: Sequence[Message] = ()
    """What it was made of, as the caller passed it."""
    batch_id: str | None = None
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    for_5x: bool = False
    """Whether 4.x brokers would misunderstand it; see `Publishing.adapt`."""


class Template:
    """The parts of a header that are the same for all messages to a queue.

    With `signing` the middle is only a part, which a message's signature completes. `plain` is the
    head with the system flag of plain messages: none, or that of half messages.
    """

    __slots__ = ("half", "head", "middle", "plain", "queue", "signing", "sys_flag")

    def __init__(
        self,
        queue: MessageQueue,
        head: bytes,
        middle: bytes,
        *,
        signing: SendSigning | None = None,
        sys_flag: int = 0,
    ) -> None:
        self.queue = queue
        self.head = head
        self.plain = b"%b%d" % (head, sys_flag)
        self.middle = middle
        self.signing = signing
        self.sys_flag = sys_flag
        self.half: Template | None = None  # the same for half messages, once it is needed


_MOST_TEMPLATES = 65_536  # queues come from a route, and a route from a peer


class RequestWriter:
    """Writes the requests of one producer. Any thread may call it.

    `as_command` is passed if requests need more than their fields, `user` as well if that is no
    more than a signature.
    """

    def __init__(
        self,
        group: str,
        options: ProducerOptions,
        as_command: AsCommand | None = None,
        user: SigningUser | None = None,
    ) -> None:
        self._group = group
        self._default_topic = options.template_topic
        self._queue_nums = options.new_topic_queues
        self._as_command = as_command
        self._user = user
        self._by_field = as_command is not None and user is None
        # By `id` of the queue: hashing it would cost more than the rest of the lookup. Safe because
        # a template keeps its queue alive, and `frame` compares it with `is`.
        self._plain: dict[int, Template] = {}
        self._templates: dict[tuple[MessageQueue, int, bool], Template] = {}

    def frame(
        self,
        message: Outgoing,
        queue: MessageQueue,
        opaque: int,
        born_ms: int,
        *,
        oneway: bool = False,
    ) -> bytes:
        """Write the whole frame of a request. Raises `InvalidInput` if text cannot be UTF-8."""
        if (
            self._by_field
            or message.max_reconsume_times is not None
            or (self._user is not None and message.code not in SENDS)
        ):
            return self._frame_by_field(message, queue, opaque, born_ms, oneway=oneway)
        template = self._plain.get(id(queue))
        if (
            template is None
            or template.queue is not queue
            or message.code != _SEND
            or message.batch_id is not None
        ):
            template = self._template_of(queue, message.code, message.batch_id is not None)
        middle = template.middle
        if template.signing is not None:
            own = (
                f"{message.sys_flag}{born_ms}{message.flag}{message.properties}"
                f"{message.reconsume_times}"
            )
            middle = template.signing.middle(own, message.body)
        header = b'%b%d","g":"%d","h":"%d","i":%b,"j":"%d%b%d,"language":"PYTHON","opaque":%d%b' % (
            template.head,
            message.sys_flag,
            born_ms,
            message.flag,
            _json(message.properties),
            message.reconsume_times,
            middle,
            ONEWAY_FLAG if oneway else 0,
            opaque,
            REQUEST_TAIL,
        )
        size = len(header)
        return _prefix(4 + size + len(message.body), size) + header + message.body

    @property
    def is_plain(self) -> bool:
        """Whether requests are no more than their fields, and perhaps a signature."""
        return not self._by_field

    @property
    def signs(self) -> bool:
        """Whether requests have a signature."""
        return self._user is not None

    def plain_template(self, queue: MessageQueue) -> Template:
        """Return what requests with one message to a queue have in common."""
        template = self._plain.get(id(queue))
        if template is None or template.queue is not queue:
            template = self._template_of(queue, _SEND, is_batch=False)
        return template

    def batch_template(self, queue: MessageQueue) -> Template:
        """Return what requests with batches to a queue have in common."""
        return self._template_of(queue, _SEND_BATCH, is_batch=True)

    def _template_of(self, queue: MessageQueue, code: int, is_batch: bool) -> Template:  # noqa: FBT001 - part of a key
        key = (queue, code, is_batch)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
                self._plain.clear()
            template = self._templates[key] = self._make_template(*key)
        if code == _SEND and not is_batch:
            if len(self._plain) >= _MOST_TEMPLATES:
                self._plain.clear()
            self._plain[id(queue)] = Template(
                queue, template.head, template.middle, signing=template.signing
            )
        return template

    def _make_template(self, queue: MessageQueue, code: int, batch: object) -> Template:
        values = (
            self._group, queue.topic, self._default_topic, str(self._queue_nums),
            str(queue.queue_id),
        )  # fmt: skip
        is_batch = b"true" if batch else b"false"
        start = b'"a":%b,"b":%b,"c":%b,"d":%b,"e":%b,"f":"' % tuple(map(_json, values))
        middle = b'","k":"false","m":"%b","n":%b' % (is_batch, _json(queue.broker_name))
        if self._user is None:
            head = b'{"code":%d,"extFields":{%b' % (code, start)
            return Template(queue, head, middle + b'},"flag":')
        end = f"false{is_batch.decode()}{queue.broker_name}"
        signing = SendSigning(self._user, code, values, end, middle)
        head = b'{"code":%d,"extFields":{%b%b' % (code, signing.fields, start)
        return Template(queue, head, middle, signing=signing)

    def _frame_by_field(
        self, message: Outgoing, queue: MessageQueue, opaque: int, born_ms: int, *, oneway: bool
    ) -> bytes:
        fields = SendRequestV2(
            producer_group=self._group,
            topic=queue.topic,
            default_topic=self._default_topic,
            default_topic_queue_nums=self._queue_nums,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=born_ms,
            flag=message.flag,
            properties=message.properties,
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            max_reconsume_times=message.max_reconsume_times,
            batch=message.batch_id is not None,
            bname=queue.broker_name,
        )
        if self._as_command is None:
            command = Command.request(message.code, opaque, fields, message.body)
        else:
            command = self._as_command(message.code, fields, message.body)
        flag = ONEWAY_FLAG if oneway else 0
        return msgspec.structs.replace(command, opaque=opaque, flag=flag).encode()


class _StoredFields(ReceiptFields, frozen=True, gc=False, kw_only=True):
    """The fields of a response that a receipt needs, with numbers of any size."""

    queueId: int  # noqa: N815 - Java's keys
    queueOffset: int  # noqa: N815


read_stored = msgspec.json.Decoder(_StoredFields, strict=False).decode
"""Reads the fields of a response that says "stored"; raises what msgspec does."""


def read_receipt(
    answer: Command, message: Outgoing, queue: MessageQueue, address: str, namespace: str = ""
) -> SendReceipt:
    """Return the receipt of a response, with the topic's name outside of the namespace.

    Raises the `ServerError` that a refusal stands for, and `HeaderMalformed`.
    """
    status = send_status(answer.code)
    if status is None:
        raise refusal(answer, message.code, address)
    fields = answer.ext_fields
    stored = None
    if type(fields) is msgspec.Raw:
        try:
            stored = read_stored(fields)
        except (msgspec.DecodeError, ValueError):
            stored = None
    if stored is None:
        stored = _read_by_field(answer)
    queue_id = stored.queueId
    topic = unwrap_namespace(namespace, queue.topic) if namespace else queue.topic
    if queue_id != queue.queue_id or topic != queue.topic:
        queue = MessageQueue(topic, queue.broker_name, queue_id)
    whole = message.batch_id if stored.batchUniqId is not None else None
    return SendReceipt(
        status=status,
        message_id=message.unique_id if whole is None else whole,
        offset_message_id=stored.msgId,
        queue=queue,
        queue_offset=stored.queueOffset,
        transaction_id=stored.transactionId,
        recall_handle=stored.recallHandle,
        region_id=stored.region or DEFAULT_REGION,
        trace_on=stored.trace_on != "false",
    )


def refusal(answer: Command, code: int, address: str) -> ServerError:
    """Return the error that a response to a request with `code` stands for."""
    return server_error(answer.code, answer.remark, request=request_name(code), address=address)


def _read_by_field(answer: Command) -> _StoredFields:
    """Read what the fast decoder does not, such as a binary header; raises `HeaderMalformed`."""
    header = answer.header(SendResponse)
    fields = answer.ext
    return _StoredFields(
        header.msg_id,
        queueId=header.queue_id,
        queueOffset=header.queue_offset,
        transactionId=header.transaction_id,
        batchUniqId=header.batch_uniq_id,
        recallHandle=header.recall_handle,
        region=header.region,
        trace_on=fields.get("TRACE_ON"),
    )
