"""What the broker and the name server serve is what the catalogue says, with a right for each."""

import json
from typing import Any

import pytest

from pocketmq.broker.access.needs_by_code import NEEDS
from pocketmq.broker.by_code import FEATURES, HANDLERS, with_header
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.serving.overload import longest_wait, with_back_pressure
from pocketmq.client.brokers import main_port
from pocketmq.nameserver.access_control import RIGHTS
from pocketmq.nameserver.server import HANDLERS as NAME_SERVER_HANDLERS
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.catalogue import REQUESTS, request_of
from pocketmq.protocol.peers import PeerKind
from pocketmq.protocol.request import RequestQueue
from pocketmq.protocol.requests.offsets import GetMaxOffsetRequest
from tests.broker.running import client, running, send_fields


def served_by(peer: PeerKind) -> set[int]:
    return {code for code, row in REQUESTS.items() if peer in row.served_by}


def test_a_broker_serves_what_the_catalogue_says_and_refuses_a_controllers_with_a_reason() -> None:
    assert served_by(PeerKind.BROKER) <= HANDLERS.keys()
    beyond = HANDLERS.keys() - served_by(PeerKind.BROKER)
    assert beyond == served_by(PeerKind.CONTROLLER) - served_by(PeerKind.NAME_SERVER)


def test_no_request_has_two_handlers() -> None:
    assert sum(len(feature.HANDLERS) for feature in FEATURES) == len(HANDLERS)


def test_a_name_server_serves_what_the_catalogue_says() -> None:
    assert NAME_SERVER_HANDLERS.keys() == served_by(PeerKind.NAME_SERVER)


@pytest.mark.parametrize("code", sorted(HANDLERS), ids=lambda code: Code(code).name)
def test_every_request_to_a_broker_has_a_row_a_right_and_a_queue(code: int) -> None:
    row = request_of(code)
    assert code in NEEDS
    limit = longest_wait(BrokerConfig(), code)
    assert (limit is None) == (row.queue is RequestQueue.UNLIMITED)


def test_a_handler_that_takes_another_header_than_its_row_has_is_refused() -> None:
    def handle(state: Any, connection: Any, request: Any, header: GetMaxOffsetRequest) -> None: ...

    with_header(Code.GET_MAX_OFFSET, handle)
    with pytest.raises(TypeError, match=r"handle at .* expects header .*, but its row declares"):
        with_header(Code.GET_MIN_OFFSET, handle)


PROMPT = (
    Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE, Code.CONSUMER_SEND_MSG_BACK,
    Code.END_TRANSACTION, Code.RECALL_MESSAGE, Code.SEND_REPLY_MESSAGE, Code.SEND_REPLY_MESSAGE_V2,
    Code.ACK_MESSAGE, Code.BATCH_ACK_MESSAGE, Code.CHANGE_MESSAGE_INVISIBLETIME, Code.HEART_BEAT,
    Code.UNREGISTER_CLIENT, Code.CHECK_CLIENT_CONFIG, Code.UPDATE_CONSUMER_OFFSET,
    Code.QUERY_CONSUMER_OFFSET, Code.GET_MAX_OFFSET, Code.GET_MIN_OFFSET, Code.LOCK_BATCH_MQ,
    Code.SEARCH_OFFSET_BY_TIMESTAMP, Code.UNLOCK_BATCH_MQ, Code.GET_CONSUMER_LIST_BY_GROUP,
)  # fmt: skip
LARGE = (
    Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE, Code.POP_MESSAGE, Code.PEEK_MESSAGE,
    Code.QUERY_MESSAGE, Code.VIEW_MESSAGE_BY_ID, Code.GET_ALL_TOPIC_CONFIG,
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Code.GET_ALL_CONSUMER_OFFSET, Code.QUERY_ASSIGNMENT,
)  # fmt: skip


@pytest.mark.parametrize("code", PROMPT + LARGE, ids=lambda code: code.name)
def test_only_requests_with_large_answers_wait_while_answers_pile_up(code: Code) -> None:
    handler = HANDLERS[code]
    assert (with_back_pressure(code, handler) is handler) == (code in PROMPT)


def test_rights_are_for_requests_that_are_in_the_catalogue() -> None:
    known = (
        served_by(PeerKind.BROKER)
        | served_by(PeerKind.CONTROLLER)
        | served_by(PeerKind.NAME_SERVER)
    )
    assert NEEDS.keys() <= known
    assert RIGHTS.keys() == NAME_SERVER_HANDLERS.keys()


def test_what_keeps_a_connection_of_its_own_goes_to_the_main_port() -> None:
    """Java: MQClientAPIImpl brokerVIPChannel, and the calls that are made without it."""
    assert {Code(code).name for code in main_port()} == {
        "PULL_MESSAGE", "HEART_BEAT", "UNREGISTER_CLIENT", "END_TRANSACTION",
        "CHECK_CLIENT_CONFIG", "LITE_PULL_MESSAGE", "POP_MESSAGE", "ACK_MESSAGE",
        "CHANGE_MESSAGE_INVISIBLETIME", "NOTIFICATION", "BATCH_ACK_MESSAGE",
    }  # fmt: skip


REFUSED = [
    *range(1001, 1007), *range(1008, 1014), *range(2001, 2005), 355, 902, 903, 906, 5001,
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
