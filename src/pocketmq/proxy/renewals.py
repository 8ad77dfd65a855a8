"""Messages that the proxy keeps hidden for its clients until they are acknowledged.

A push consumer does not say how long it takes. Its messages are popped for a minute and renewed, as
long as the client lives; a renewal gives a message a new handle, which replaces the client's own.
"""

import asyncio
import logging

import msgspec

from pocketmq.client.clock import Clock
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.receipts import Receipt, ReceiptPlace

logger = logging.getLogger("pocketmq.proxy")

_PAUSES = (60.0, 180.0, 300.0, 600.0, 1800.0, 3600.0)
"""For how long each renewal hides a message, as in Apache's proxy."""
_MOST_FAILURES = 3
_RELEASE_WAIT = 3.0


class _Renewed(msgspec.Struct):
    receipt: Receipt
    topic: str
    since: float
    renewals: int = 0
    failures: int = 0
    renewing: asyncio.Task[None] | None = None


class Renewals:
    """Messages in the hands of clients. Belongs to one event loop."""

    def __init__(self, session: Session, tasks: Tasks, limits: ProxyLimits, clock: Clock) -> None:
        self._session = session
        self._tasks = tasks
        self._limits = limits
        self._clock = clock
        self.by_client: dict[tuple[str, str], dict[ReceiptPlace, _Renewed]] = {}
        """The messages by client and group; without those that have none."""
        self._releasing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return sum(len(held) for held in self.by_client.values())

    def add(self, client_id: str, group: str, topic: str, receipt: Receipt) -> None:
        """Renew a message from now on."""
        now = asyncio.get_running_loop().time()
        held = self.by_client.setdefault((client_id, group), {})
        held[receipt.place] = _Renewed(receipt, topic, now)

    async def take(self, client_id: str, group: str, receipt: Receipt) -> Receipt:
        """Stop renewing a message and return its newest receipt.

        Waits for a renewal in flight: the broker would refuse the receipt that it replaces.
        """
        renewed = self._removed((client_id, group), receipt)
        if renewed is None:
            return receipt
        await _settled(renewed)
        return renewed.receipt

    def newest(self, client_id: str, group: str, receipt: Receipt) -> Receipt | None:
        """Return a message's newest receipt; None while a renewal is in flight."""
        renewed = self.by_client.get((client_id, group), {}).get(receipt.place)
        if renewed is None:
            return receipt
        return renewed.receipt if renewed.renewing is None else None

    def forget(self, client_id: str, group: str, receipt: Receipt) -> None:
        """Stop renewing a message that was never delivered, or is acknowledged."""
        self._removed((client_id, group), receipt)

    def release(self, client_id: str) -> None:
        """Make the messages of a client that is gone visible soon."""
        for key in [key for key in self.by_client if key[0] == client_id]:
            for renewed in self.by_client.pop(key).values():
                task = self._tasks.spawn(self._release(key[1], renewed), "release of a message")
                self._releasing.add(task)
                task.add_done_callback(self._releasing.discard)

    async def released(self) -> None:
        """Wait until the messages of clients that are gone are released, within a limit."""
        if self._releasing:
            await asyncio.wait(self._releasing, timeout=_RELEASE_WAIT)

    async def _release(self, group: str, renewed: _Renewed) -> None:
        await _settled(renewed)
        await self.reveal(group, renewed.topic, renewed.receipt)

    async def reveal(self, group: str, topic: str, receipt: Receipt) -> None:
        """Make a message visible to its group soon."""
        requests = PopRequests(self._session, group, ordered=False, from_first=False)
        try:
            await requests.change_invisible(
                topic, receipt.handle, self._limits.hidden_when_undelivered
            )
        except MQError as error:
            logger.info(
                'cannot release a message: group=%s topic=%s error="%s"; '
                "it is redelivered when its invisible time ends",
                group, topic, error,
            )  # fmt: skip

    async def renew_due(self) -> None:
        """Renew the messages whose invisible time ends soon."""
        soon = self._clock.now_ms() + round(self._limits.renew_ahead * 1000)
        due = [
            (key, renewed)
            for key, held in self.by_client.items()
            for renewed in held.values()
            if renewed.receipt.visible_at_ms <= soon and renewed.renewing is None
        ]
        for key, renewed in due:
            renewing = self._renew(key, renewed)
            renewed.renewing = self._tasks.spawn(renewing, "renewal of a message")

    async def _renew(self, key: tuple[str, str], renewed: _Renewed) -> None:
        age = asyncio.get_running_loop().time() - renewed.since
        if age > self._limits.renew_longest or renewed.failures >= _MOST_FAILURES:
            if self.by_client.get(key, {}).get(renewed.receipt.place) is renewed:
                self._removed(key, renewed.receipt)
            return
        requests = PopRequests(self._session, key[1], ordered=False, from_first=False)
        pause = _PAUSES[min(renewed.renewals, len(_PAUSES) - 1)]
        try:
            handle = await requests.change_invisible(renewed.topic, renewed.receipt.handle, pause)
        except MQError as error:
            renewed.failures += 1
            logger.warning(
                'renewal failed: group=%s topic=%s error="%s"', key[1], renewed.topic, error
            )
        else:
            renewed.receipt = Receipt(handle, renewed.receipt.commit_log_offset)
            renewed.renewals, renewed.failures = renewed.renewals + 1, 0
        finally:
            renewed.renewing = None

    def _removed(self, key: tuple[str, str], receipt: Receipt) -> _Renewed | None:
        held = self.by_client.get(key)
        renewed = None if held is None else held.pop(receipt.place, None)
        if held is not None and not held:
            del self.by_client[key]
        return renewed


async def _settled(renewed: _Renewed) -> None:
    """Wait for a renewal in flight; a failed one leaves the receipt as it was."""
    if renewed.renewing is not None:
        await asyncio.wait([renewed.renewing])
