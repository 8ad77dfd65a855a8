"""Each function of the native core beside the pure one: processor time per message, and the ratio.

Rounds of both alternate; the least of the rounds counts.
"""

import time
from collections.abc import Callable

from pocketmq import native
from pocketmq.model import Message
from pocketmq.protocol import Command, DeliveryContext, command_reader, pulled
from pocketmq.protocol.batch import encode_numbered
from pocketmq.protocol.batch_records import pack_batch
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.records import Record

ROUNDS = 9
SECONDS = 0.05
BODY = bytes(100)
IMPORTED = (command_reader, pulled)
"""Importing a module fills `native.pure` with its functions."""
NOW_MS = 1_790_000_000_000
Work = Callable[[Callable[..., object]], object]


def rows() -> list[tuple[str, str, int, Work]]:
    """Return a name, the function, how many messages a call has, and how it is called."""
    ids = UniqueIds(bytes((10, 1, 2, 3)), 70001, 0x1B2A3C4D)
    like = Record(topic=b"orders", body=b"", queue_id=3, born_timestamp_ms=NOW_MS)
    places = {"store_timestamp_ms": NOW_MS, "store_host": bytes(8)}
    made: list[tuple[str, str, int, Work]] = []
    for count in (32, 256):
        plain = [Message("orders", BODY) for _ in range(count)]
        rich = [Message("orders", BODY, "paid", [f"A{n}"], {"region": "eu"}) for n in range(count)]
        for kind, messages in (("", plain), (", tag, key and property", rich)):
            body, _ = encode_numbered(messages, *ids.take(NOW_MS, count))
            records = pack_batch(body, like, 0, 0, **places).data  # type: ignore[arg-type]
            made += [
                (
                    f"encode a batch of {count}{kind}",
                    "encode_numbered",
                    count,
                    lambda function, m=messages, c=count: function(m, *ids.take(NOW_MS, c)),
                ),
                (
                    f"records of a batch of {count}{kind}",
                    "pack_batch",
                    count,
                    lambda function, b=body: function(b, like, 5, 1 << 30, **places),
                ),
                (
                    f"messages of a pull of {count}{kind}",
                    "plain_messages",
                    count,
                    lambda function, r=records: function(r, DeliveryContext("broker-a")),
                ),
            ]
    sends = b"".join(
        Command.request(310, n, {"a": "shop", "b": "orders", "e": "3"}, BODY).encode()
        for n in range(64)
    )
    made.append(
        ("commands of a read of 64", "cut_commands", 64, lambda f: f(sends, 0, len(sends) + 1))
    )
    return made


def least(work: Work, functions: tuple[Callable[..., object], ...]) -> list[float]:
    """Return the least processor time of a call of each function, of rounds that alternate."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for number, function in enumerate(functions):
            calls, start = 0, time.process_time()
            while (spent := time.process_time() - start) < SECONDS:
                work(function)
                calls += 1
            best[number] = min(best[number], spent / calls)
    return best


def main() -> None:
    print(native.description)
    if native.core is None:
        return
    print(f"{'µs per message':<52}{'native':>8}{'pure':>8}{'ratio':>8}")
    for name, function, count, work in rows():
        both = getattr(native.core, function), native.pure[function]
        core, pure = (seconds * 1e6 / count for seconds in least(work, both))
        print(f"{name:<52}{core:>8.2f}{pure:>8.2f}{pure / core:>8.1f}")


if __name__ == "__main__":
    main()
