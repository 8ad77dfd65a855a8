"""Heartbeats: they tell every broker, periodically, which groups this client belongs to.

A heartbeat requested during a round is not skipped, as in Java, but sent in one round right after
it: the current round may have sent the old state. Brokers get theirs concurrently, so that one that
does not respond does not delay the others; two to the same broker never overtake each other.
Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from pocketmq.client.addresses import BrokerAddresses, BrokerProcess
from pocketmq.client.calls import ServerCalls
from pocketmq.client.questions.asking import TypedAnswer, ask, ask_address, ask_with
from pocketmq.client.tasks import Tasks
from pocketmq.errors import HeaderMalformed, MQError
from pocketmq.model.java_strings import java_hash
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.requests import membership

logger = logging.getLogger("pocketmq.client")


class Heartbeats:
    """Sends heartbeats; `describe` returns their content."""

    def __init__(
        self,
        calls: ServerCalls,
        addresses: BrokerAddresses,
        tasks: Tasks,
        describe: Callable[[], membership.Heartbeat | None],
        *,
        timeout: float,
        short: bool = False,
    ) -> None:
        self._calls = calls
        self._addresses = addresses
        self._tasks = tasks
        self._describe = describe
        self._timeout = timeout
        self._short = short  # version 2: leave out what a broker has already
        self._round: asyncio.Task[bool] | None = None
        self._next_round: asyncio.Task[bool] | None = None
        self._beating: dict[str, asyncio.Task[bool]] = {}
        self._known_by: dict[str, int] = {}  # address -> fingerprint it has in full
        self._failing: set[str] = set()

    async def beat(self, *, in_full: bool = False) -> bool:
        """Send one to every broker, only to masters without a consumer; True if one responded.

        `in_full` repeats what brokers have already: after a rebalance, whose new subscription
        version is not part of a fingerprint.
        """
        if in_full:
            self._known_by.clear()
        task = self._round_to_wait_for()
        await asyncio.wait({task})
        return not task.cancelled() and task.result()

    def beat_soon(self, *, in_full: bool = False) -> None:
        """Do the same as `beat` without waiting."""
        if in_full:
            self._known_by.clear()
        self._round_to_wait_for()

    async def beat_to(self, address: str) -> bool:
        """Send one to the broker at an address, such as a fresh connection; True if it responds."""
        place = next((each for each in self._addresses.places() if each.address == address), None)
        if place is None:
            return False
        # One in flight uses the same connection, or fails with the previous one.
        task = self._beating.get(address) or self._send_in_turn(place)
        await asyncio.wait({task})
        return not task.cancelled() and task.result()

    async def unregister(self, client_id: str, *, producer: str = "", consumer: str = "") -> None:
        """Unregister a group from every connected broker; the others have dropped it already.

        Waits for heartbeats in flight: if they arrived later, they would register it again.
        """
        if self._beating:
            await asyncio.wait([*self._beating.values()])
        header = membership.UnregisterClientRequest(
            client_id=client_id, producer_group=producer or None, consumer_group=consumer or None
        )
        places = self._addresses.places()
        await asyncio.gather(*(self._leave(place.address, header) for place in places))

    def forget(self, address: str) -> None:
        """Assume after a lost connection that the broker has lost the subscriptions, too."""
        self._known_by.pop(address, None)

    def _round_to_wait_for(self) -> asyncio.Task[bool]:
        if self._round is None:
            self._round = self._tasks.spawn(self._send_all(), "heartbeats")
            self._round.add_done_callback(self._round_ended)
            return self._round
        if self._next_round is None:
            self._next_round = self._tasks.spawn(self._send_all(self._round), "heartbeats")
            self._next_round.add_done_callback(self._round_ended)
        return self._next_round

    def _round_ended(self, _: asyncio.Task[bool]) -> None:
        self._round, self._next_round = self._next_round, None

    async def _send_all(self, after: asyncio.Task[bool] | None = None) -> bool:
        if after is not None:
            await asyncio.wait({after})
        places = self._addresses.places()
        self._failing &= {place.address for place in places}
        tasks = [self._send_in_turn(place) for place in places]
        if tasks:
            await asyncio.wait(tasks)
        return any(not task.cancelled() and task.result() for task in tasks)

    def _send_in_turn(self, place: BrokerProcess) -> asyncio.Task[bool]:
        # After the previous one to this broker: the older state must not arrive later. What is sent
        # is described when its turn comes.
        address = place.address
        task = self._tasks.spawn(
            self._send(place, self._beating.get(address)), f"heartbeat to {address}"
        )
        self._beating[address] = task
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[bool]) -> None:
        for address in [key for key, value in self._beating.items() if value is task]:
            del self._beating[address]

    async def _send(self, place: BrokerProcess, after: asyncio.Task[bool] | None) -> bool:
        if after is not None:
            await asyncio.wait({after})
        heartbeat = self._describe()
        if heartbeat is None or not (heartbeat.consumer_data_set or place.is_master):
            return False
        address, fingerprint = place.address, 0
        if self._short:
            fingerprint = fingerprint_of(heartbeat)
            has_all = self._known_by.get(address) == fingerprint
            heartbeat = _version_two(heartbeat, fingerprint, has_all)
        question = ask_with(membership.HEART_BEAT, membership.HeartbeatRequest(), heartbeat)
        try:
            answer = await ask_address(self._calls.ask, address, question, timeout=self._timeout)
        except MQError as error:
            log = logger.debug if address in self._failing else logger.warning
            log("heartbeat failed: broker=%s address=%s error=%s", place.broker, address, error)
            self._failing.add(address)
            return False
        self._failing.discard(address)
        if address in self._addresses:
            self._addresses.note_version(address, answer.version)
        if self._short:
            self._note(address, fingerprint, answer)
        return True

    def _note(
        self,
        address: str,
        fingerprint: int,
        answer: TypedAnswer[membership.HeartbeatResponse, None],
    ) -> None:
        """Remember whether a broker has all subscriptions, so that the next one can omit them."""
        try:
            said = answer.header()
        except HeaderMalformed:
            said = membership.HeartbeatResponse()
        if said.is_support_heart_beat_v2 and not said.is_sub_change:
            self._known_by[address] = fingerprint
        else:
            self._known_by.pop(address, None)

    async def _leave(self, address: str, header: membership.UnregisterClientRequest) -> None:
        if self._calls.connected(address) is None:
            return
        try:
            question = ask(None, membership.UNREGISTER_CLIENT, header)
            await ask_address(self._calls.ask, address, question, timeout=self._timeout)
        except MQError as error:
            logger.info("cannot unregister: broker=%s error=%s", address, error)


def fingerprint_of(heartbeat: membership.Heartbeat) -> int:
    """Return the hash by which brokers see that subscriptions have not changed; never 0.

    Clients with the same members have the same hash, whatever the versions of subscriptions.
    """
    bare = msgspec.structs.replace(
        heartbeat,
        client_id="",
        consumer_data_set=[
            msgspec.structs.replace(
                data,
                subscription_data_set=[
                    msgspec.structs.replace(each, sub_version=0)
                    for each in data.subscription_data_set
                ],
            )
            for data in heartbeat.consumer_data_set
        ],
    )
    return java_hash(encode_body(bare).decode()) or 1


def _version_two(
    heartbeat: membership.Heartbeat,
    fingerprint: int,
    has_all: bool,  # noqa: FBT001 - private
) -> membership.Heartbeat:
    """Return a heartbeat of version 2, without subscriptions for a broker that has them all."""
    consumers = heartbeat.consumer_data_set
    if has_all:
        consumers = [msgspec.structs.replace(data, subscription_data_set=[]) for data in consumers]
    return msgspec.structs.replace(
        heartbeat,
        consumer_data_set=consumers,
        heartbeat_fingerprint=fingerprint,
        without_sub=has_all,
    )
