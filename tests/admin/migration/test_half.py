"""Half messages stay in the source until they end; then they are copied like any other."""

from pathlib import Path

from pocketmq import aio
from tests.admin.migration.test_migration import two


async def test_an_open_transaction_is_named_and_copied_when_it_is_committed(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        ending: list[object] = []

        async def decide(message: aio.Message, transaction: str) -> aio.TransactionState:
            ending.append((message, transaction))
            with move.ledger() as ledger:
                async with move.migration() as migration:
                    assert (await migration.outlook(ledger)).transactions == 1
                    assert (await migration.copy(ledger)).copied == 0
            return aio.TransactionState.COMMIT

        def committed(message: object) -> aio.TransactionState:
            raise AssertionError(f"nobody asks so soon about {message}")

        async with aio.Producer(move.source.address, group="p", check=committed) as producer:
            await producer.send_in_transaction(aio.Message("orders", b"paid"), decide)
        assert len(ending) == 1
        assert await move.copy() == 1
        assert [m.body for m in (await move.stored(move.target, "orders"))[0]] == [b"paid"]
