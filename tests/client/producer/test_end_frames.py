"""Ends of transactions written from templates are those that any request would be."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.client.producer.end_frames import end_frame
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.sending import EndTransactionRequest

INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.sampled_from(["orders", 'o"r', '"msgId":"","transactionId":""', "Übung", "shop%orders"])
IDS = st.text("0123456789ABCDEFxyz", min_size=1, max_size=40)


@given(
    st.integers(-(2**31), 2**31 - 1), NAMES, NAMES, NAMES, INT64, INT64,
    st.sampled_from([0, 8, 12]), IDS, IDS,
)  # fmt: skip
def test_a_usual_end_is_written_as_any_request_is(
    opaque: int,
    topic: str,
    group: str,
    broker: str,
    offset: int,
    position: int,
    state: int,
    message_id: str,
    transaction_id: str,
) -> None:
    request = EndTransactionRequest(
        topic=topic,
        producer_group=group,
        tran_state_table_offset=offset,
        commit_log_offset=position,
        commit_or_rollback=state,
        msg_id=message_id,
        transaction_id=transaction_id,
        bname=broker,
    )
    frame = end_frame(request)
    assert frame is not None
    expected = Command.request(RequestCode.END_TRANSACTION, opaque, request, oneway=True)
    assert frame(opaque) == expected.encode()


@pytest.mark.parametrize("change", [{"msg_id": 'A"B'}, {"transaction_id": None}, {"msg_id": "É"}])
def test_ids_that_are_not_plain_are_left_to_the_ordinary_way(change: dict[str, str | None]) -> None:
    usual = EndTransactionRequest(
        producer_group="shop",
        tran_state_table_offset=1,
        commit_log_offset=2,
        commit_or_rollback=8,
        msg_id="A",
        transaction_id="B",
    )
    assert end_frame(usual) is not None
    assert end_frame(msgspec.structs.replace(usual, **change)) is None
