"""Clients that live as long as a web application: Starlette, FastAPI, Litestar and others.

def orders() -> aio.Producer:
    return aio.Producer("127.0.0.1:9876", group="shop")

app = FastAPI(lifespan=lifespan(orders=orders))

@app.post("/orders")
async def order(request: Request) -> None:
    await request.state.orders.send(aio.Message("orders", b"42 EUR"))
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

MakeClient = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes a client of `pocketmq.aio`: a producer, or a consumer with its subscriptions."""


def lifespan(**make: MakeClient) -> Callable[[Any], AbstractAsyncContextManager[dict[str, Any]]]:
    """Return an application's `lifespan`: clients start with it and are closed at its end.

    Each start of the application makes its clients anew, on its own event loop, in the order
    given; they are closed in reverse order, also if a later one cannot start. By their names they
    are part of the state of each request.
    """

    @asynccontextmanager
    async def running(_application: Any) -> AsyncIterator[dict[str, Any]]:
        async with AsyncExitStack() as stack:
            yield {name: await stack.enter_async_context(each()) for name, each in make.items()}

    return running
