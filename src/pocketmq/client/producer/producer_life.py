"""The life of an asyncio producer: made, started, closed. What it sends is up to `producer`.

Belongs to one event loop, shared by its tasks.
"""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_callable
from pocketmq.client.codecs import BodyCodec, check_codec
from pocketmq.client.interceptors import SendInterceptor
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.interception import intercept
from pocketmq.client.producer.running import RunningProducer
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.errors import ClientClosed
from pocketmq.model.names import wrap_namespace


class ProducerLife:
    """The part of a producer that starts and closes it."""

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        check: TransactionCheck | None = None,
        interceptors: Sequence[SendInterceptor] = (),
        codec: BodyCodec | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        if check is not None:
            check_callable("check", check, "a half message")
        self.client_options, self.options = sort_settings(
            ProducerOptions, group, name_servers, options, settings
        )
        self._name = f"producer of group {wrap_namespace(self.client_options.namespace, group)}"
        self._check = check
        self._hooks: list[SendHook] = []
        self._lifetime = Lifetime(self._name)
        self._lease: Lease | None = None
        self._parts: RunningProducer | None = None
        self._open = False
        check_codec(codec)
        self._codec = codec
        intercept(self, group, interceptors)

    async def start(self) -> Self:
        """Make ready to send; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a producer in this group already, `ClientClosed` once it has been closed.
        """
        await self._lifetime.start(self._start)
        return self

    async def _start(self) -> None:
        lease = await lease_session(self.client_options)
        try:
            parts = RunningProducer(lease.session, self.options, self._hooks, self._check)
            parts.begin()
        except BaseException:
            await lease.release()
            raise
        self._lease, self._parts = lease, parts
        self._open = True

    async def close(self) -> None:
        """Refuse new sends, wait for those in flight, then leave. Closing twice is harmless.

        Sends in flight end by their own deadlines at the latest. If the caller is cancelled,
        closing continues in the background. Raises `ClientForked`.
        """
        self._lifetime.check_loop()
        self._open = False
        if self._lease is not None:
            self._lease.session.check_process()
        await self._lifetime.end(self._close)

    async def _close(self) -> None:
        self._open = False
        if self._lease is None or self._parts is None:
            return
        try:
            await self._parts.stop()
        finally:
            await self._lease.release()

    def __repr__(self) -> str:
        lease = self._lease
        state = "running" if self._open else "not started" if lease is None else "closed"
        return shown(self, self.options.group, lease, state)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def session(self) -> Session:
        """The client this producer is part of. Raises `ClientClosed` unless it is running."""
        return self._opened().session

    @property
    def sending(self) -> Sending:
        """The path of its sends. Raises `ClientClosed` unless it is running."""
        return self._opened().sending

    @property
    def parts(self) -> RunningProducer:
        """What it is made of while it runs. Raises `ClientClosed` unless it is running."""
        return self._opened()

    @property
    def submitting(self) -> Submitting:
        """The path of sends that no caller waits for. Raises `ClientClosed` unless running."""
        return self._opened().submitting

    def _opened(self) -> RunningProducer:
        if not self._open or self._parts is None:
            raise ClientClosed(self._name)
        return self._parts

    def _running(self) -> RunningProducer:
        """Return the parts for a call that needs their loop."""
        if not self._open or self._parts is None:
            raise ClientClosed(self._name)
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:  # a thread without any
            here = None
        if here is not self._lifetime.loop:
            self._lifetime.check_loop()
        return self._parts
