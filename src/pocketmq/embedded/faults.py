"""A broken network around one broker: all its connections pass through proxies that can fail.

One proxy stands before the broker, and the broker tells clients its address; the other stands
before the name server, for this broker alone.
"""

from pocketmq.embedded.fault_proxy import FaultProxy, Way
from pocketmq.net import Address


class BrokerNetwork:
    """The ways from clients to a broker and from the broker to the name server."""

    def __init__(self, host: str, nameserver: str) -> None:
        self._nowhere = str(Address(host, 1))  # nobody listens on port 1
        self._front = FaultProxy(self._nowhere, host)
        self._behind = FaultProxy(nameserver, host)
        self.cut_off = False

    async def open(self) -> None:
        """Listen on both sides; clients wait until `lead_to` says where the broker is."""
        self._behind.accept()
        self._front.accept()
        await self._front.stop_accepting()

    @property
    def address(self) -> str:
        """Where clients find the broker."""
        return self._front.address

    @property
    def nameserver(self) -> str:
        """Where the broker finds the name server."""
        return self._behind.address

    def lead_to(self, broker: str) -> None:
        """Let clients through to where the broker listens now."""
        self._front.target = broker
        if not self.cut_off:
            self._front.accept()

    async def partition(self) -> None:
        """Let nothing pass, in silence: no end, no reset, newcomers hear nothing."""
        self.cut_off = True
        for proxy in (self._front, self._behind):
            proxy.hold(Way.BOTH)
            await proxy.stop_accepting()

    def heal(self) -> None:
        """Let everything pass at full speed; what was held back arrives now."""
        self.cut_off = False
        for proxy in (self._front, self._behind):
            proxy.pass_through()
            proxy.accept()

    def slow(self, delay: float) -> None:
        """Hold every piece back for so long, between clients and broker, each way."""
        self._front.delay(delay)

    def lead_nowhere(self) -> None:
        """Reset whoever comes, while the broker is down; the port stays ours."""
        self._front.target = self._nowhere

    async def close(self) -> None:
        """End every connection."""
        await self._front.close()
        await self._behind.close()
