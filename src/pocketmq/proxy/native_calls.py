"""The calls of one connection on the native core: events start them, and they answer into the core.

A call is a task, from its request on; the client's reset cancels it. Deadlines are the client's to
keep: it resets a call that is late, as all gRPC clients do.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from pocketmq.proxy.calls.shortcuts import Shortcuts, ShortPlace
from pocketmq.proxy.methods import CallFailed, GrpcCode, Method, MethodKind, Methods
from pocketmq.proxy.native_call import Fields, NativeCall, done
from pocketmq.proxy.translation.caller import FIELDS, Caller, read_caller
from pocketmq.proxy.translation.limits import ProxyLimits

logger = logging.getLogger("pocketmq.proxy")

NewCore: TypeAlias = Callable[[list[str], int, int, int], Any]
"""`pocketmq_core.GrpcConnection`."""
_LEAVING = "the proxy is shutting down"
_CALLED, _RECEIVED, _WRITABLE, _RESET = range(4)  # as in native/src/grpc_python.rs


class NativeCalls:
    """The calls of one connection. Belongs to one event loop.

    `changed` is called when the core has something to send; `flush` sends it now.
    """

    def __init__(
        self,
        new_core: NewCore,
        methods: Methods,
        shortcuts: Shortcuts | None,
        limits: ProxyLimits,
        address: str,
        *,
        changed: Callable[[], None],
        flush: Callable[[], None],
    ) -> None:
        sizes = limits.streams_per_connection, limits.largest_headers, limits.largest_request
        self.core = new_core(list(FIELDS), *sizes)
        self.changed = changed
        self.flush = flush
        self.loop = asyncio.get_running_loop()
        self._methods = methods
        self.shortcuts = shortcuts
        self._address = address
        self._open: dict[int, NativeCall] = {}
        self._known: tuple[Fields, Caller] | None = None
        self._gone = False
        self.emptied: asyncio.Future[None] | None = None
        """What `leave` waits for."""

    def caller(self, fields: Fields) -> Caller:
        """Return the client of a call; it is mostly that of the last one."""
        known = self._known
        if known is not None and known[0] == fields:
            return known[1]
        caller = read_caller(fields, self._address)
        if self.shortcuts is not None and (known is None or known[0][0] != fields[0]):
            self.core.shorten(self.shortcuts.core, caller.client_id, caller.address)
        self._known = fields, caller
        return caller

    def take(self, event: tuple[Any, ...]) -> None:
        """Handle an event of the core."""
        kind = event[0]
        if kind == _CALLED:
            self._called(event)
            return
        call = self._open.get(event[1])
        if call is None:
            if kind == _RESET and event[2] is not None:
                _release(*event[2])
            return
        if kind == _RECEIVED:
            self._received(call, event[2], ended=event[3])
        elif kind == _WRITABLE:
            call.resume()
        elif kind == _RESET:
            self._end(call)

    def unusual(self, event: tuple[Any, ...], place: ShortPlace, outcome: Any) -> None:
        """Take over a plain call whose outcome the core does not know how to tell."""
        if self._gone:  # nobody is told, so nothing is tried again
            return
        call = self._opened(event, self._methods[event[2]])
        short = call.method.short
        assert short is not None
        try:
            short.resume(event[5], call, place, outcome)
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
            self._fail(call, error)

    def cancel_all(self) -> None:
        """End all calls: the connection is gone."""
        self._gone = True
        for call in list(self._open.values()):
            self._end(call)
        for place, opaque in self.core.take_posted():
            _release(place, opaque)

    async def leave(self, grace: float) -> None:
        """End exchanges now, which have no end of their own, and all others soon."""
        for call in list(self._open.values()):
            if call.method.kind is MethodKind.BOTH:
                self._refuse(call)
        if self._open or self.core.open_calls:
            self.emptied = self.loop.create_future()
            await asyncio.wait([self.emptied], timeout=grace)
        for call in list(self._open.values()):
            self._refuse(call)
        self.core.end_all(GrpcCode.UNAVAILABLE, _LEAVING)  # those of the core itself

    def _refuse(self, call: NativeCall) -> None:
        self._end(call)
        self.core.end(call.stream, GrpcCode.UNAVAILABLE, _LEAVING)
        self.changed()

    def check_left(self) -> None:
        """Let `leave` go on if no call is open, those of the core included."""
        if self.emptied is not None and not self._open and not self.core.open_calls:
            done(self.emptied)

    def has(self, stream: int) -> bool:
        """Return whether a call is open."""
        return stream in self._open

    def finish(self, call: NativeCall, response: bytes) -> None:
        """Send the response of a call, unless the client has ended it."""
        if call.stream in self._open:
            self.core.answer(call.stream, response)
            self._over(call)

    def finish_all(self, call: NativeCall, responses: bytes) -> bool:
        """Send all responses of a call, framed; False if the client does not take them now."""
        if call.stream not in self._open or not self.core.answer_framed(call.stream, responses):
            return False
        self._over(call)
        return True

    def continue_stream(self, call: NativeCall, responses: AsyncGenerator[bytes, None]) -> None:
        """Send responses that take their time."""
        self._start(call, self._many(call, responses))

    def continue_with(self, call: NativeCall, begin: Callable[[], Awaitable[bytes]]) -> None:
        """Make the response in a task, unless the client has ended the call."""

        async def respond() -> None:
            self.finish(call, await begin())

        if call.stream in self._open:
            self._start(call, respond())

    def _called(self, event: tuple[Any, ...]) -> None:
        _, stream, path, _, _, message, ended = event
        method = self._methods.get(path)
        if method is None:
            self.core.end(stream, GrpcCode.UNIMPLEMENTED, f"no method {path[:200]}")
            self.changed()
            return
        call = self._opened(event, method)
        if method.kind is MethodKind.BOTH:
            self._start(call, self._exchange(call))
        self._received(call, message, ended=ended)

    def _opened(self, event: tuple[Any, ...], method: Method) -> NativeCall:
        _, stream, _, fields, timeout, *_ = event
        deadline = 0.0 if timeout is None else self.loop.time() + timeout
        call = self._open[stream] = NativeCall(self, stream, method, fields, deadline)
        return call

    def _received(self, call: NativeCall, message: bytes | None, *, ended: bool) -> None:
        if call.method.kind is MethodKind.BOTH:
            call.arrive(message, ended=ended)
            return
        if message is not None:
            call.request = message
        if not ended:
            return
        request = call.request
        if request is None:
            self._end(call)
            self.core.end(call.stream, GrpcCode.INTERNAL, "the call has no request")
            self.changed()
        elif self._begun(call, request):
            pass
        elif call.method.kind is MethodKind.ONE:
            self._start(call, self._one(call, request))
        else:
            self.continue_stream(call, call.method.serve(request, call))

    def _begun(self, call: NativeCall, request: bytes) -> bool:
        method = call.method
        begin = method.begin if method.short is None else method.short.begin
        if begin is None:
            return False
        try:
            return begin(request, call)
        except Exception:
            logger.exception("fast path of a call failed; using the general path")
            return False

    def _start(self, call: NativeCall, work: Coroutine[Any, Any, None]) -> None:
        call.task = self.loop.create_task(work)

    def _end(self, call: NativeCall) -> None:
        self._open.pop(call.stream, None)
        if call.task is not None:
            call.task.cancel()
        if call.release is not None:
            call.release()

    async def _one(self, call: NativeCall, request: bytes) -> None:
        try:
            answer = await call.method.serve(request, call)
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
            self._fail(call, error)
        else:
            self.core.answer(call.stream, answer)
            self._over(call)

    async def _many(self, call: NativeCall, responses: AsyncGenerator[bytes, None]) -> None:
        try:
            async for each in responses:
                await call.write(each)
        except Exception as error:  # noqa: BLE001 - the edge
            self._fail(call, error)
        else:
            self.core.end(call.stream, GrpcCode.OK, "")
            self._over(call)
        finally:
            await responses.aclose()

    async def _exchange(self, call: NativeCall) -> None:
        try:
            await call.method.serve(call)
        except Exception as error:  # noqa: BLE001 - the edge
            self._fail(call, error)
        except asyncio.CancelledError:
            if call.stream not in self._open:  # else the method has hung up
                raise
            self.core.end(call.stream, GrpcCode.RESOURCE_EXHAUSTED, "the stream was closed")
            self._over(call)
        else:
            self.core.end(call.stream, GrpcCode.OK, "")
            self._over(call)

    def _fail(self, call: NativeCall, error: Exception) -> None:
        if isinstance(error, CallFailed):
            self.core.end(call.stream, error.code, error.message)
        else:
            logger.error("call failed", exc_info=error)
            self.core.end(call.stream, GrpcCode.UNKNOWN, type(error).__name__)
        self._over(call)

    def _over(self, call: NativeCall) -> None:
        self._open.pop(call.stream, None)
        self.changed()


def _release(place: ShortPlace, opaque: int) -> None:
    """Stop waiting for a broker's response to a plain call of the core, whose client ended it."""
    place.broker.connection.forget(opaque)
