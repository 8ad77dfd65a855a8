"""Servers on real sockets that say what a test wants them to, and sessions on them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.client.options import ClientOptions
from pocketmq.client.session import Session
from pocketmq.client.sessions import lease_session
from pocketmq.model import BrokerData, QueueData, TopicRoute
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from tests.net.peers import Recorder, serving

Say = Callable[[Command], Command | None]


def _unsupported(request: Command) -> Command:
    return request.reply(3, "not supported")


class Scripted(Recorder):
    """Answers by code; what it has no script for is not supported."""

    def __init__(self, script: Mapping[int, Say]) -> None:
        super().__init__(self._answer)
        self.script = dict(script)

    def _answer(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            say = self.script.get(request.code, _unsupported)
            answer = say(request)
            if answer is not None and not request.is_oneway:
                connection.write(answer.encode())

    def asked_for(self, code: int) -> list[Command]:
        """Requests of one code so far."""
        return [request for request in self.requests if request.code == code]


def route(*brokers: BrokerData, queues: int = 4, perm: int = 6) -> TopicRoute:
    """A route with the same number of queues on each broker."""
    return TopicRoute(
        queue_datas=[
            QueueData(
                broker_name=broker.broker_name,
                read_queue_nums=queues,
                write_queue_nums=queues,
                perm=perm,
            )
            for broker in brokers
        ],
        broker_datas=list(brokers),
    )


def broker(name: str, *addresses: str) -> BrokerData:
    """A broker with a master and slaves."""
    return BrokerData(cluster="c", broker_name=name, broker_addrs=dict(enumerate(addresses)))


class Directory(Scripted):
    """A name server that tells the routes in `routes`."""

    def __init__(self, routes: Mapping[str, TopicRoute] | None = None) -> None:
        super().__init__({RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route})
        self.routes = dict(routes or {})

    def _route(self, request: Command) -> Command:
        found = self.routes.get(request.ext["topic"])
        if found is None:
            return request.reply(17, "no route")
        return request.reply(0, body=encode_body(found))

    def topics_asked(self) -> list[str]:
        """Topics in the order they were asked for."""
        return [request.ext["topic"] for request in self.requests]


@asynccontextmanager
async def session_on(name_servers: str, **options: Any) -> AsyncIterator[Session]:
    """A session that is stopped at the end."""
    lease = await lease_session(ClientOptions(name_servers=name_servers, **options))
    try:
        yield lease.session
    finally:
        await lease.release()


__all__ = ["Directory", "Scripted", "broker", "route", "serving", "session_on"]
