"""Sends a half message and never decides: name server, group, topic, body. Killed by its parent."""

import asyncio
import sys

from pocketmq.client.producer.producer import Producer
from pocketmq.model import Message, TransactionState
from pocketmq.protocol import ReceivedMessage


async def main(name_servers: str, group: str, topic: str, body: str) -> None:
    async def undecided(_: Message, transaction_id: str) -> TransactionState:
        print("undecided", transaction_id, flush=True)
        await asyncio.Event().wait()
        return TransactionState.UNKNOWN

    async def check(_: ReceivedMessage) -> TransactionState:
        return TransactionState.UNKNOWN

    async with Producer(name_servers, group=group, send_timeout=30.0, check=check) as producer:
        await producer.send_in_transaction(Message(topic, body.encode()), undecided)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
