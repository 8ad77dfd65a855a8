import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.model import TransactionState
from pocketmq.protocol import trace_text

VECTORS = Path(__file__).parents[1] / "vectors" / "java-traces.json"
JAVA = json.loads(VECTORS.read_text())
END = trace_text.TracedEnd(
    time_ms=1794707172151,
    region="DefaultRegion",
    group="shop",
    topic="orders",
    message_id="M3",
    keys="A17",
    store_host="127.0.0.1:10911",
    transaction_id="M3",
    state=TransactionState.COMMIT,
)
UNTOLD = msgspec.structs.replace(
    END,
    time_ms=1794707172152,
    transaction_id=None,
    state=TransactionState.UNKNOWN,
    from_check=True,
)
EVENTS: list[list[trace_text.Traced]] = [
    [
        trace_text.TracedSend(
            time_ms=1794707172145,
            region="DefaultRegion",
            group="shop",
            topic="orders",
            message_id="7F000001000051AF0000000000002CB2",
            tag="paid",
            keys="A17 B18",
            store_host="127.0.0.1:10911",
            body_size=42,
            cost_ms=3,
            offset_message_id="7F00000100002A9F0000000000000457",
        )
    ],
    [
        trace_text.TracedSend(
            time_ms=1,
            region="eu",
            group="shop",
            topic="größe",
            message_id="M2",
            store_host="[::1]:10911",
            cost_ms=5000,
            kind=trace_text.TracedKind.HALF,
            ok=False,
        )
    ],
    [
        trace_text.TracedDelivery(
            time_ms=1794707172146,
            region="DefaultRegion",
            group="billing",
            request_id="R1",
            message_id=message_id,
            retries=retries,
            keys=keys,
        )
        for message_id, retries, keys in (("M1", 2, "k"), ("M2", 0, None))
    ],
    [
        trace_text.TracedHandling(
            request_id="R1",
            message_id=message_id,
            cost_ms=2,
            ok=False,
            keys=keys,
            handled_as=trace_text.HandledAs.RAISED,
            time_ms=1794707172150,
            group="billing",
        )
        for message_id, keys in (("M1", "k"), ("M2", None))
    ],
    [END],
    [UNTOLD],
    [msgspec.structs.replace(UNTOLD, state=TransactionState.ROLLBACK)],
    [
        trace_text.TracedRecall(
            time_ms=1794707172153,
            region="DefaultRegion",
            group="shop",
            topic="orders",
            message_id="M4",
        )
    ],
]


@pytest.mark.parametrize(("said", "events"), list(zip(JAVA, EVENTS, strict=True)))
def test_java_writes_and_reads_the_same(
    said: dict[str, object], events: list[trace_text.Traced]
) -> None:
    text = str(said["text"])
    assert "".join(map(trace_text.encode_traced, events)) == text
    assert trace_text.decode_traced(text) == events
    assert (
        sorted({key for event in events for key in trace_text.traced_keys(event)}) == said["keys"]
    )


def test_records_of_older_clients_are_read() -> None:
    """Before the offset id; with the client's address behind; what came of a call, in 3 forms."""
    old = "Pub|1|r|g|t|m|tag|k|h:1|5|6|0|true;Pub|1|r|g|t|m|tag|k|h:1|5|6|3|o|false|192.0.2.1;"
    after = "SubAfter|R|m|7|true|k;SubAfter|R|m|7|true|k|4;SubAfter|R|m|7|true|k|4|9|g;"
    first, second, *calls = trace_text.decode_traced((old + after).translate({124: 1, 59: 2}))
    assert isinstance(first, trace_text.TracedSend)
    assert (first.ok, first.offset_message_id, first.kind) == (
        True,
        None,
        trace_text.TracedKind.NORMAL,
    )
    assert isinstance(second, trace_text.TracedSend)
    assert (second.ok, second.offset_message_id, second.kind) == (
        False,
        "o",
        trace_text.TracedKind.DELAYED,
    )
    call = trace_text.TracedHandling(request_id="R", message_id="m", cost_ms=7, ok=True, keys="k")
    coded = msgspec.structs.replace(call, handled_as=trace_text.HandledAs.FAILED)
    assert calls == [call, coded, msgspec.structs.replace(coded, time_ms=9, group="g")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x02\x02",
        "Pub",
        "Pub\x01soon\x01r\x02",
        "Unheard\x01of\x02",
        "SubBefore\x01" + "9" * 100_000 + "\x01r\x01g\x01R\x01m\x010\x01k\x02",
        "EndTransaction\x011\x01r\x01g\x01t\x01m\x01a\x01k\x01h\x019\x01x\x01UNKNOW\x01true\x02",
        "EndTransaction\x011\x01r\x01g\x01t\x01m\x01a\x01k\x01h\x012\x01x\x01MAYBE\x01true\x02",
    ],
)
def test_what_makes_no_sense_is_passed_over(text: str) -> None:
    good = trace_text.encode_traced(END)
    assert trace_text.decode_traced(text) == []
    assert trace_text.decode_traced(f"{good}{text}\x02{good}") == [END, END]


word = st.text(min_size=1).filter(lambda text: text not in ("null", ""))


@given(keys=word, tag=word, group=st.text(), size=st.integers(0, 2**31 - 1))
def test_a_record_stays_whole_whatever_is_in_it(keys: str, tag: str, group: str, size: int) -> None:
    event = msgspec.structs.replace(
        END, keys=keys, tag=tag, group=group, time_ms=size, transaction_id=None
    )
    (again,) = trace_text.decode_traced(trace_text.encode_traced(event))
    swap = {1: "\ufffd", 2: "\ufffd"}
    assert again == msgspec.structs.replace(
        event, keys=keys.translate(swap), tag=tag.translate(swap), group=group.translate(swap)
    )


def test_keys_are_single_words_even_in_a_hostile_id() -> None:
    event = msgspec.structs.replace(END, message_id=" two\tids ", keys="  a  b ")
    assert trace_text.traced_keys(event) == ["two", "ids", "a", "b"]
