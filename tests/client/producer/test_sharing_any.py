"""Whatever is submitted arrives once each, where its receipt says, and in order for each key."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.model import Message, MessageQueue, SendReceipt
from tests.client.producer.stage import stage, stores
from tests.client.producer.storing import Storing, turns

numbers = st.integers(0, 3)
choices: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.builds(lambda n: {"ordering_key": f"k{n}"}, numbers),
    st.builds(lambda n: {"queue": MessageQueue("orders", "broker-a", n)}, numbers),
    st.builds(lambda n: {"selector": lambda queues, _: queues[n]}, numbers),
    st.just({"delay_level": 1}),
    st.just({"timeout": 20.0}),
)
steps = st.tuples(
    choices,
    st.sampled_from([0, 10, 200, 700]),  # extra bytes
    st.sampled_from([{}, {"tag": "t"}, {"keys": ["k1", "k2"]}, {"properties": {"a": "b"}}]),
    st.sampled_from(["go on", "go on", "turn", "answer", "send"]),
)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(steps, min_size=1, max_size=40),
    st.fixed_dictionaries(
        {
            "batch_bytes": st.sampled_from([0, 100, 400, 65536]),
            "window": st.sampled_from([1, 2, 5, 1024]),
            "linger": st.sampled_from([None, 0, 0.001]),
            "compress_from": st.sampled_from([600, 4096]),
        }
    ),
)
def test_any_mix_arrives_once_each_and_in_order(
    given_steps: list[Any], options: dict[str, Any]
) -> None:
    if not options["batch_bytes"]:
        options = options | {"linger": None}
    asyncio.run(story(given_steps, options))


async def story(given_steps: list[Any], options: dict[str, Any]) -> None:
    async with stage({"broker-a": stores}, queues=4, send_timeout=30.0, **options) as on:
        await on.producer.send(Message("orders", b"first"))
        store = Storing(on.brokers["broker-a"], held=True)
        futures: list[asyncio.Future[SendReceipt]] = []
        shares: list[str] = []
        for n, (choice, extra, parts, then) in enumerate(given_steps):
            message = Message("orders", b"%03d" % n + b"x" * extra, **parts)
            if then == "send" and "timeout" not in choice:
                futures.append(asyncio.ensure_future(on.producer.send(message, **choice)))
                shares.append("send")
            else:
                futures.append(on.producer.submit(message, **choice))
                shares.append("submit")
            if then in ("turn", "answer"):
                await turns()
            if then == "answer" and store.waiting:
                store.answer()
        await turns()
        store.go_on()
        receipts = await asyncio.wait_for(asyncio.gather(*futures), 20)
        seen = [(each.queue.queue_id, each.queue_offset) for each in receipts]
        assert len(set(seen)) == len(seen)
        assert sum(map(len, store.queues.values())) == len(given_steps)
        for receipt in receipts:
            kept = store.queues[receipt.queue.queue_id][receipt.queue_offset]
            assert kept.properties["UNIQ_KEY"] == receipt.message_id
            assert kept.place == receipt.offset_message_id
        by_choice: dict[Any, list[tuple[int, int]]] = {}
        for (choice, *_), how, place in zip(given_steps, shares, seen, strict=True):
            if how == "submit" and ("ordering_key" in choice or "queue" in choice):
                by_choice.setdefault(str(choice), []).append(place)
        for places in by_choice.values():
            assert places == sorted(places)
        assert len(on.producer.sending.window) == 0
