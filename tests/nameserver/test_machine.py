"""The table against a model without indexes, caches or shortcuts, over any course of events."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pocketmq.errors import ServerError
from pocketmq.nameserver.registrations import Announcement, BrokerKey
from pocketmq.nameserver.route_registry import RouteRegistry
from tests.nameserver.shapes import broker, config, topics

TOPICS = ("t", "u", "v", "w")
names = st.sampled_from(("b", "d"))
ids = st.integers(0, 2)
connections = st.integers(0, 3)
tables = st.fixed_dictionaries(
    {},
    optional={each: st.tuples(st.sampled_from((1, 4)), st.sampled_from((4, 6))) for each in TOPICS},
)


class Model:
    """The rules again, as plainly as they can be written."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, int], str] = {}
        self.queues: dict[tuple[str, str], tuple[int, int]] = {}
        self.live: dict[str, dict[str, Any]] = {}  # by address
        self.acting: dict[str, bool] = {}

    def ids_of(self, name: str) -> list[int]:
        return sorted(each for owner, each in self.ids if owner == name)

    def refuses(self, said: Announcement, table: dict[str, tuple[int, int]]) -> bool:
        return (said.name, said.broker_id) not in self.ids and len(table) == 1

    def register(
        self,
        said: Announcement,
        table: dict[str, tuple[int, int]],
        version: int,
        on: int,
        now: float,
    ) -> None:
        first = (said.name, said.broker_id) not in self.ids
        self.acting[said.name] = bool(said.acting_master)
        for key in [key for key, address in self.ids.items() if address == said.address]:
            if key[1] != said.broker_id:
                del self.ids[key]
        self.ids[said.name, said.broker_id] = said.address
        prime = said.acting_master is not None and said.broker_id == self.ids_of(said.name)[0]
        known = self.live.get(said.address)
        changed = first or known is None or known["version"] != version
        if said.broker_id == 0 or prime:
            for topic, (count, perm) in table.items():
                if changed or (topic, said.name) not in self.queues:
                    stands_in = said.broker_id != 0 and said.acting_master
                    self.queues[topic, said.name] = (count, perm & ~2 if stands_in else perm)
        self.live[said.address] = {"name": said.name, "version": version, "on": on, "heard": now}

    def leave(self, address: str, name: str) -> None:
        self.live.pop(address, None)
        held = [key for key, known in self.ids.items() if key[0] == name and known == address]
        for key in held:
            del self.ids[key]
        if not self.ids_of(name):
            self.queues = {key: data for key, data in self.queues.items() if key[1] != name}
        elif held and self.acting[name] and self.ids_of(name)[0] > 0:
            self.change(name, lambda perm: perm & ~2)

    def change(self, name: str, change: Any) -> None:
        for key, (count, perm) in self.queues.items():
            if key[1] == name:
                self.queues[key] = (count, change(perm))


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = RouteRegistry()
        self.model = Model()
        self.now = 0.0
        self.said: list[tuple[Announcement, dict[str, tuple[int, int]], int, int]] = []

    @rule(
        name=names, broker_id=ids, moved=ids, version=st.integers(1, 2), known=tables, on=connections,
        acting=st.sampled_from((None, False, True)),
    )  # fmt: skip
    def register(
        self, name: str, broker_id: int, moved: int, version: int,
        known: dict[str, tuple[int, int]], on: int, acting: bool | None,
    ) -> None:  # fmt: skip
        said = broker(name, broker_id, f"{name}-{moved}:1", acting=acting)
        self.said.append((said, known, version, on))
        self.say(said, known, version, on)

    @rule(back=st.integers(1, 4))
    def register_again(self, back: int) -> None:
        """Register again, as brokers do every 30 s."""
        if len(self.said) >= back:
            self.say(*self.said[-back])

    def say(
        self, said: Announcement, known: dict[str, tuple[int, int]], version: int, on: int
    ) -> None:
        digest = repr((version, sorted(known.items()))).encode()
        configs = [config(topic, count, perm) for topic, (count, perm) in known.items()]
        registration = topics(*configs, version=version, digest=digest)
        # As the handler does: what the table holds already is not read again.
        held = self.table.holds(said, digest)
        if self.model.refuses(said, known):
            with pytest.raises(ServerError, match="register broker failed"):
                self.table.register(said, None if held else registration, on, self.now)
        else:
            self.table.register(said, None if held else registration, on, self.now)
            self.model.register(said, known, version, on, self.now)

    @rule(name=names, broker_id=ids)
    def unregister(self, name: str, broker_id: int) -> None:
        address = self.model.ids.get((name, broker_id))
        if address is not None:
            self.table.unregister(BrokerKey("c", address), name, broker_id)
            self.model.leave(address, name)

    @rule(on=connections)
    def lose_connection(self, on: int) -> None:
        self.table.connection_lost(on)
        for address in sorted(self.model.live):
            if self.model.live[address]["on"] == on:
                self.model.leave(address, self.model.live[address]["name"])

    @rule(seconds=st.sampled_from((1.0, 50.0, 119.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.table.expire(self.now)
        for address, live in list(self.model.live.items()):
            if live["heard"] + 120.0 <= self.now:
                self.model.leave(address, live["name"])

    @rule(name=names, broker_id=ids)
    def heard(self, name: str, broker_id: int) -> None:
        address = f"{name}-{broker_id}:1"
        self.table.heard(BrokerKey("c", address), 0, self.now)
        if address in self.model.live:
            self.model.live[address]["heard"] = self.now

    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic: str) -> None:
        self.table.remove_topic(topic)
        self.model.queues = {
            key: data for key, data in self.model.queues.items() if key[0] != topic
        }

    @rule(name=names)
    def wipe(self, name: str) -> None:
        self.table.wipe_write_permission(name)
        self.model.change(name, lambda perm: perm & ~2)

    @rule(name=names)
    def allow(self, name: str) -> None:
        self.table.add_write_permission(name)
        self.model.change(name, lambda _: 6)

    @invariant()
    def routes_are_those_of_the_model(self) -> None:
        for topic in TOPICS:
            route = self.table.routes.get(topic)
            datas = [] if route is None else route.queue_datas
            brokers = [] if route is None else route.broker_datas
            assert {each.broker_name: (each.read_queue_nums, each.perm) for each in datas} == {
                name: data for (known, name), data in self.model.queues.items() if known == topic
            }
            assert {each.broker_name: each.broker_addrs for each in brokers} == {
                each.broker_name: self.addresses(each.broker_name) for each in datas
            }

    @invariant()
    def brokers_are_those_of_the_model(self) -> None:
        present = {name for name, _ in self.model.ids}
        assert {each.name: each.addresses for each in self.table.brokers.all()} == {
            name: self.addresses(name) for name in present
        }
        clusters = self.table.brokers.clusters()
        assert {cluster: set(held) for cluster, held in clusters.items()} == (
            {"c": present} if present else {}
        )

    def addresses(self, name: str) -> dict[int, str]:
        return {each: self.model.ids[name, each] for each in self.model.ids_of(name)}


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTheTable = Machine.TestCase
