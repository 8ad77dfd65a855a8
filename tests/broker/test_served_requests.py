"""What the broker and the name server serve is what the catalogue says, with a right for each."""

import pytest

from pocketmq.broker.access.needs_by_code import NEEDS
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.handlers.by_code import HANDLERS
from pocketmq.broker.patience import longest_wait
from pocketmq.client.brokers import main_port
from pocketmq.nameserver.access_control import RIGHTS
from pocketmq.nameserver.dispatch import HANDLERS as NAME_SERVER_HANDLERS
from pocketmq.protocol.catalogue import REQUESTS, request_of
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.request import Peer, RequestQueue


def served_by(peer: Peer) -> set[int]:
    return {code for code, row in REQUESTS.items() if peer in row.served_by}


def test_a_broker_serves_what_the_catalogue_says_and_refuses_a_controllers_with_a_reason() -> None:
    assert served_by(Peer.BROKER) <= HANDLERS.keys()
    beyond = HANDLERS.keys() - served_by(Peer.BROKER)
    assert beyond == served_by(Peer.CONTROLLER) - served_by(Peer.NAME_SERVER)


def test_a_name_server_serves_what_the_catalogue_says() -> None:
    assert NAME_SERVER_HANDLERS.keys() == served_by(Peer.NAME_SERVER)


@pytest.mark.parametrize("code", sorted(HANDLERS), ids=lambda code: Code(code).name)
def test_every_request_to_a_broker_has_a_row_a_right_and_a_queue(code: int) -> None:
    row = request_of(code)
    assert code in NEEDS
    limit = longest_wait(BrokerConfig(), code)
    assert (limit is None) == (row.queue is RequestQueue.UNLIMITED)


def test_rights_are_for_requests_that_are_in_the_catalogue() -> None:
    known = served_by(Peer.BROKER) | served_by(Peer.CONTROLLER) | served_by(Peer.NAME_SERVER)
    assert NEEDS.keys() <= known
    assert RIGHTS.keys() == NAME_SERVER_HANDLERS.keys()


def test_what_keeps_a_connection_of_its_own_goes_to_the_main_port() -> None:
    """Java: MQClientAPIImpl brokerVIPChannel, and the calls that are made without it."""
    assert {Code(code).name for code in main_port()} == {
        "PULL_MESSAGE", "HEART_BEAT", "UNREGISTER_CLIENT", "END_TRANSACTION",
        "CHECK_CLIENT_CONFIG", "LITE_PULL_MESSAGE", "POP_MESSAGE", "ACK_MESSAGE",
        "CHANGE_MESSAGE_INVISIBLETIME", "NOTIFICATION", "BATCH_ACK_MESSAGE",
    }  # fmt: skip
