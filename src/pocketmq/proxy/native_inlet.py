"""The inlet on the native core: each client's socket is served here, without grpcio and a relay."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pocketmq import native
from pocketmq.net.limits import Limits
from pocketmq.proxy.native_link import NativeLink, NewCalls
from pocketmq.proxy.translation.limits import ProxyLimits

if TYPE_CHECKING:
    from pocketmq.proxy.calls.shortcuts import Shortcuts
    from pocketmq.proxy.methods import Methods
    from pocketmq.proxy.native_calls import NewCore


def native_core() -> "NewCore | None":
    """Return what makes connections on the native core; None where grpcio serves."""
    found: NewCore | None = getattr(native.core, "GrpcConnection", None)
    return found


class NativeInlet:
    """Serves the sockets that a front admits. Belongs to one event loop."""

    files = 1

    def __init__(
        self,
        core: "NewCore",
        limits: ProxyLimits,
        network: Limits,
        started: Callable[[], Awaitable[bool]],
    ) -> None:
        """Ask `started` before each client is served: it calls `serve`, or returns False."""
        self.left: Callable[[], None] = lambda: None
        self._core = core
        self._limits = limits
        self._network = network
        self._started = started
        self._new_calls: NewCalls | None = None
        self._open: set[NativeLink] = set()

    def __len__(self) -> int:
        return len(self._open)

    def serve(self, methods: "Methods", shortcuts: "Shortcuts | None") -> None:
        """Serve these methods from now on; protobuf's library is loaded."""
        from pocketmq.proxy.native_calls import NativeCalls

        def new_calls(
            address: str, changed: Callable[[], None], flush: Callable[[], None]
        ) -> NativeCalls:
            own = self._core, methods, shortcuts, self._limits
            return NativeCalls(*own, address, changed=changed, flush=flush)

        self._new_calls = new_calls

    async def enter(self, peer: socket.socket, address: str, tls: dict[str, Any]) -> None:
        """Serve a client. Raises OSError."""
        link = NativeLink(address, self._network)
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: link, peer, **tls)
            if not await self._started():
                link.abort()
                return
        except BaseException:
            link.abort()
            raise
        self._open.add(link)
        link.gone.add_done_callback(lambda _: self._forget(link))
        assert self._new_calls is not None
        link.serve(self._new_calls)

    async def end_calls(self, grace: float) -> None:
        """End all calls and say goodbye to their clients."""
        await asyncio.gather(*(link.leave(grace) for link in list(self._open)))

    async def close(self) -> None:
        """Close everything; what was to be written may leave for a short time."""
        leaving = list(self._open)
        for link in leaving:
            link.finish()
        if leaving:
            await asyncio.wait([link.gone for link in leaving], timeout=2 * self._network.linger)
        for link in leaving:
            link.abort()

    def _forget(self, link: NativeLink) -> None:
        self._open.discard(link)
        self.left()
