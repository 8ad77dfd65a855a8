"""What a broker without replicas, controller, RocksDB and cold data says when asked about them."""

import json

import pytest

from pocketmq.broker.by_code import HANDLERS
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.request import PeerKind
from tests.broker.running import client, running, send_fields

REFUSED = [
    *range(1001, 1007), *range(1008, 1014), *range(2001, 2005), 355, 513, 902, 903, 906, 5001,
    200_070, 200_071, *range(200_074, 200_080),
]  # fmt: skip


@pytest.mark.parametrize("code", REFUSED)
async def test_it_is_refused_as_unknown_with_a_reason(code: int) -> None:
    async with running() as (_, address), client(address) as peer:
        answer = await peer.ask(code)
        assert answer.code == 3
        start, _, reason = (answer.remark or "").partition(": ")
        assert start == f" request type {code} not supported"
        assert reason


async def test_a_single_broker_is_a_master_without_slaves() -> None:
    async with running() as (broker, address), client(address) as peer:
        await peer.ask(310, send_fields("T"), b"x")
        status = json.loads((await peer.ask(907)).body)
        assert (status["master"], status["inSyncSlaveNums"]) == (True, 0)
        assert status["masterCommitLogMaxOffset"] == broker.state.store.log.tail
        assert (await peer.ask(908, {"masterFlushOffset": "1"})).code == 0
        assert (await peer.ask(905, {"minBrokerId": "0"})).code == 0
        assert (await peer.ask(200_056)).code == 0  # there is no other store of pops to leave
        refused = await peer.ask(1007)
        assert (refused.code, refused.remark) == (1, "this request only for controllerMode ")
        assert json.loads((await peer.ask(354, {"topic": "T"})).body)["checkStatus"] == 0


def test_every_request_for_brokers_has_an_answer() -> None:
    missing = [
        row.code.name
        for row in REQUESTS.values()
        if PeerKind.BROKER in row.served_by and row.code not in HANDLERS
    ]
    assert missing == []
