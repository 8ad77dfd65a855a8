"""Requests of brokers to a client: decoded, passed to the member they are for, answered.

An invalid request, or a member that fails, only turns the response into an error. Too many requests
at once are refused.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pocketmq import errors
from pocketmq.client.members import ConsumerMember, Roll
from pocketmq.client.tasks import Tasks
from pocketmq.model.property_names import PRODUCER_GROUP
from pocketmq.net import Connection
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage, RequestCode
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests import client_calls, membership, offsets, sending

logger = logging.getLogger("pocketmq.client")

MOST_AT_ONCE = 1024
"""Requests answered at a time; a broker, or what pretends to be one, cannot start more tasks."""

_Handler: TypeAlias = Callable[[Command, str], Awaitable[bytes]]


class Inbound:
    """Answers the requests of brokers for all members. Belongs to one event loop."""

    def __init__(self, roll: Roll, tasks: Tasks) -> None:
        self._roll = roll
        self._tasks = tasks
        self._under_way = 0
        self._handlers: dict[int, _Handler] = {
            RequestCode.CHECK_TRANSACTION_STATE: self._check_transaction,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._ids_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset_offsets,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._offsets_reached,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._take_reply,
        }

    def receive(self, connection: Connection, request: Command) -> None:
        """Start to answer a request."""
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f"request code {request.code} is not supported by clients"
            answer(connection, request, errors.ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        elif self._under_way >= MOST_AT_ONCE:
            answer(
                connection,
                request,
                errors.ResponseCode.SYSTEM_BUSY,
                "too many calls at the same time",
            )
        else:
            self._under_way += 1
            self._tasks.spawn(self._serve(handler, connection, request), f"answer {request.code}")

    async def _serve(self, handler: _Handler, connection: Connection, request: Command) -> None:
        try:
            body = await handler(request, connection.remote_address)
        except errors.ServerError as error:  # how a member chooses the answer's code
            answer(connection, request, error.code, error.remark)
        except errors.MQError as error:
            logger.info(
                "request of broker %s refused: %r: %s", connection.remote_address, request, error
            )
            answer(connection, request, errors.ResponseCode.SYSTEM_ERROR, str(error))
        except Exception as error:
            logger.exception("request of broker %s failed: %r", connection.remote_address, request)
            remark = f"{type(error).__name__}: {error}"
            answer(connection, request, errors.ResponseCode.SYSTEM_ERROR, remark)
        else:
            answer(connection, request, errors.ResponseCode.SUCCESS, None, body)
        finally:
            self._under_way -= 1

    # One for each request; they return the body of the response.

    async def _ids_changed(self, request: Command, _: str) -> bytes:
        group = request.header(membership.NotifyConsumerIdsChangedRequest).consumer_group
        consumer = self._roll.consumers.get(group)
        if consumer is not None:
            consumer.on_ids_changed()
        return b""

    async def _check_transaction(self, request: Command, address: str) -> bytes:
        header = request.header(sending.CheckTransactionStateRequest)
        message = _one_message(request)
        producer = self._roll.producers.get(message.get_property(PRODUCER_GROUP) or "")
        if producer is None:
            logger.debug("check-back of broker %s ignored: no such producer here", address)
        else:
            await producer.check_transaction(message, header, address)
        return b""

    async def _take_reply(self, request: Command, address: str) -> bytes:
        header = request.header(client_calls.PushReplyRequest)
        # The header has the group of the replying client, so every producer is asked.
        if not any(producer.take_reply(header, request) for producer in self._roll.producers):
            logger.info("broker %s sent a reply that no request waits for; dropped", address)
        return b""

    async def _reset_offsets(self, request: Command, _: str) -> bytes:
        header = request.header(offsets.ResetOffsetRequest)
        consumer = self._consumer(header.group)
        body = (
            decode_body(request.body, offsets.ResetOffset)
            if request.body
            else offsets.ResetOffset()
        )
        await consumer.reset_offsets(header.topic, body.offset_table)
        return b""

    async def _offsets_reached(self, request: Command, _: str) -> bytes:
        header = request.header(client_calls.GetConsumerStatusRequest)
        reached = await self._consumer(header.group).offsets_reached(header.topic)
        return encode_body(offsets.ConsumerStatus(message_queue_table=reached))

    async def _running_info(self, request: Command, _: str) -> bytes:
        header = request.header(client_calls.GetConsumerRunningInfoRequest)
        consumer = self._consumer(header.consumer_group)
        return encode_body(await consumer.running_info(with_stacks=header.jstack_enable))

    async def _consume_directly(self, request: Command, _: str) -> bytes:
        header = request.header(client_calls.ConsumeDirectlyRequest)
        consumer = self._consumer(header.consumer_group)
        message = _one_message(request, header.broker_name or "")
        return encode_body(await consumer.consume_directly(message, header.broker_name))

    def _consumer(self, group: str) -> ConsumerMember:
        consumer = self._roll.consumers.get(group)
        if consumer is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"  # Java's words
            raise errors.SystemFailure(errors.ResponseCode.SYSTEM_ERROR, remark)
        return consumer


def answer(
    connection: Connection,
    request: Command,
    code: int,
    remark: str | None,
    body: bytes = b"",
) -> None:
    """Write a response, unless the request is one-way."""
    if not request.is_oneway:
        connection.write(request.reply(code, remark, body=body).encode())


def _one_message(request: Command, broker_name: str = "") -> ReceivedMessage:
    messages = decode_pulled(request.body, DeliveryContext(broker_name=broker_name))
    if len(messages) != 1:
        raise errors.MessageMalformed(f"{len(messages)} messages where one was expected", 0)
    return messages[0]
