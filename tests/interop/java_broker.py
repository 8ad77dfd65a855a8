"""Java brokers for our clients, found through a Java name server."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pocketmq.model import TopicRoute
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests import nameserver as rows
from pocketmq.protocol.requests import topics
from tests.interop.jvm import Jars, Process, broker, listens, named_broker, wait_until
from tests.ports import free_port
from tests.wire_client import WireClient


class JavaBroker:
    """One name server, of either make, with one or more brokers."""

    def __init__(self, address: str, brokers: dict[str, str]) -> None:
        self.address = address
        self.brokers = brokers

    def create_topic(self, topic: str, queues: int) -> None:
        """Make a topic on every broker; clients find it when this returns."""
        for address in self.brokers.values():
            header = topics.CreateTopicRequest(
                topic=topic,
                default_topic="TBW102",
                read_queue_nums=queues,
                write_queue_nums=queues,
                perm=6,
                topic_filter_type="SINGLE_TAG",
                topic_sys_flag=0,
                order=False,
            )
            with WireClient(address) as client:
                answer = client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
                assert answer.code == 0, answer.remark
        wait_until(lambda: len(self.route(topic)) == len(self.brokers), f"the route of {topic}")

    def route(self, topic: str) -> list[str]:
        with WireClient(self.address) as client:
            header = rows.GetRouteRequest(topic=topic)
            answer = client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        if answer.code != 0:
            return []
        return [each.broker_name for each in decode_body(answer.body, TopicRoute).broker_datas]


class Registering:
    """Brokers of which a name server is to know soon.

    A 5.x broker registers when it starts with the name servers that it has reached until then. If
    there was none yet, it tries again ten seconds later, or when its permission is set.
    """

    def __init__(self, running: JavaBroker) -> None:
        self._running = running
        self._asked = 0.0

    def done(self, java: Iterable[str]) -> bool:
        """Return whether all are known; `java` are the addresses of those that are Java's."""
        brokers = self._running.brokers
        # Nobody asks the name server all the while, which would cost it more than to start.
        if not all(map(listens, brokers.values())):
            return False
        if set(self._running.route("TBW102")) == set(brokers):
            return True
        if not self._asked:
            self._asked = time.monotonic()
        elif time.monotonic() - self._asked > _USUAL:
            self._asked = time.monotonic()
            for address in java:
                # One that asks who one is refuses.
                with suppress(OSError), WireClient(address) as client:
                    client.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=6\n")
        return False


_USUAL = 1.0
"""Seconds in which a broker that listens has registered by itself, if it has reached anybody."""


@contextmanager
def java_brokers(jars: Jars, home: Path, *names: str, **settings: object) -> Iterator[JavaBroker]:
    """Start a Java name server with the first of them, then the others; it knows all at the end."""
    with ExitStack() as stack:
        address = f"127.0.0.1:{free_port()}"
        started: list[Process] = []
        places: dict[str, str] = {}
        for name in names:
            (home / name).mkdir(parents=True)
            port = free_port()
            own: dict[str, object] = {"brokerClusterName": "Java", **settings}
            own |= {"brokerName": name, "listenPort": port}
            start = broker if started else named_broker
            process = start(jars, home / name, address, **own)
            started.append(stack.enter_context(process))
            places[name] = f"127.0.0.1:{port}"
        running = JavaBroker(address, places)

        registering = Registering(running)

        def registered() -> bool:
            for each in started:
                each.check_alive()
            return registering.done(places.values())

        wait_until(registered, "the brokers to register", pause=0.1)
        yield running
