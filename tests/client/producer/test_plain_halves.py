"""Half messages on the short way of plain sends: the same as on the ordinary path.

A transaction with `timeout` takes the ordinary path from its start, so that both can be compared.
"""

import asyncio
import re
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import errors
from pocketmq.model import TransactionState
from pocketmq.protocol import RequestCode
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import Stage, stage
from tests.client.producer.test_plain_sends import (
    MESSAGE,
    PATIENCE,
    SAYS,
    clients_loop,
    limit_in_threads,
    set_up,
)

__all__ = ("clients_loop",)


def facts(on: Stage) -> list[Any]:
    """Return what brokers got: half messages, and ends, without what differs each time."""
    found: list[Any] = []
    for name, broker in on.brokers.items():
        for request in broker.sends:
            ext = dict(request.ext)
            properties = decode_properties(ext.pop("i").encode())
            assert properties.pop("UNIQ_KEY")
            assert ext.pop("g")
            found.append((name, request.code, ext, properties, request.body))
    return found


@pytest.mark.parametrize("brokers", ["broker-a", "all"])
@pytest.mark.parametrize("says", [*SAYS, "cut"])
@pytest.mark.usefixtures("clients_loop")
async def test_a_half_message_is_sent_as_on_the_ordinary_path(says: str, brokers: str) -> None:
    outcomes, limit = [], limit_in_threads(says)
    for settings in ({}, {"timeout": limit}):
        async with stage() as on:

            def work(settings: dict[str, Any] = settings, on: Stage = on) -> str:
                address = on.producer.client_options.name_servers
                with mq.Producer(
                    address, group="halves", send_timeout=limit, check=lambda _: None
                ) as producer:
                    assert producer._parts is not None
                    for _ in range(4):
                        producer.send(MESSAGE, timeout=PATIENCE)
                    publication = producer._parts.sending._on_loop.publishing.ready("orders")
                    assert publication is not None
                    publication.robin.index = -1 & 0x7FFF_FFFF
                    for each in on.brokers.values():
                        each.batches.clear()
                    set_up(on, says, brokers)
                    try:
                        receipt = producer.send_in_transaction(
                            MESSAGE, lambda _, __: TransactionState.COMMIT, **settings
                        )
                    except errors.MQError as error:
                        return f"{error!r} {error.outcome_unknown}"
                    return repr(receipt).replace(receipt.message_id, "ID")

            words = await asyncio.to_thread(work)
            words = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", words)
            words = re.sub(r"\d+\.\d+( s)?", "T", re.sub(r"[0-9A-F]{32}", "ID", words))
            got = facts(on)
            halves = [each for each in got if each[1] == RequestCode.SEND_MESSAGE_V2]
            assert halves
            assert all(each[2]["f"] == "4" for each in halves)
            assert all(
                each[3] == {"WAIT": "true", "TAGS": "paid", "TRAN_MSG": "true", "PGROUP": "halves"}
                for each in halves
            )
            outcomes.append((words, got))
    assert outcomes[0] == outcomes[1]
