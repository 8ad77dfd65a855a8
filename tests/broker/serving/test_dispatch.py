"""From requests to answers: every error its code, and no promise before the message is safe."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pocketmq import errors
from pocketmq.broker import broker as broker_module
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import with_code
from pocketmq.broker.core.refusals import refusal
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.store import Flusher, MessageStore, StoreOptions
from pocketmq.store.disk import Disk, DiskFile
from tests.broker.delay.test_delays import no_chores
from tests.broker.running import Client, client, pull_fields, records, running, send_fields
from tests.loops import leap, leaping, until
from tests.store.faults import FullDisk

PULL, VIEW, SEND = 11, 33, 310
NO_ROOM = (
    "service not available now. It may be caused by one of the following reasons: the broker's "
    "disk is full, messages are put to the slave, message store has been shut down, etc."
)
REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


# Errors and their codes


@pytest.mark.parametrize(
    ("error", "code", "remark"),
    [
        (errors.server_error(26, "no such group"), 26, "no such group"),
        (errors.server_error(17, None), 17, None),
        (errors.StoreFull(4096), 14, str(errors.StoreFull(4096))),
        (errors.StoreCorrupt("torn"), 14, "torn"),
        (errors.NameInvalid("topic", "a b", "a blank"), 29, "invalid topic name 'a b': a blank"),
        (
            errors.FilterSyntaxError("a", 1, "why"),
            23,
            "invalid filter expression, column 1: why\n  a\n  ^",
        ),
        (errors.InvalidInput("no"), 29, "no"),
        (errors.HeaderMalformed("it lacks a"), 1, "malformed header: it lacks a"),
        (errors.BodyMalformed("Heartbeat", "why"), 1, "malformed Heartbeat: why"),
        (errors.MQError("anything"), 1, "anything"),
    ],
)
def test_an_error_becomes_its_code_and_remark(
    error: errors.MQError, code: int, remark: str | None
) -> None:
    request = Command.request(34, 77, serialize=1)
    answer = refusal(request, error)
    assert (answer.code, answer.remark, answer.opaque) == (code, remark, 77)
    assert (answer.serialize, answer.is_response) == (1, True)


@pytest.mark.parametrize("serialize", [0, 1])
def test_an_answer_can_be_given_another_code(serialize: int) -> None:
    answer = Command.request(310, 5, serialize=serialize).reply(0, None, {"a": "b"}, b"body")
    changed = read_command(FrameReader().feed(with_code(answer.encode(), 10))[0])
    assert (changed.code, changed.opaque, changed.ext, changed.body) == (10, 5, {"a": "b"}, b"body")


# Dispatch


async def test_an_unknown_code_is_answered_as_java_does() -> None:
    async with running() as (_, address), client(address) as peer:
        answer = await peer.ask(9999)
        assert (answer.code, answer.remark) == (3, " request type 9999 not supported")


async def test_one_way_requests_are_never_answered() -> None:
    async with running() as (_, address), client(address) as peer:
        for code, body in ((9999, b""), (34, b"no heartbeat"), (SEND, b""), (VIEW, b"")):
            peer._writer.write(Command.request(code, 500 + code, body=body, oneway=True).encode())
        await peer.ask(30, {"topic": "T", "queueId": "0"})
        assert peer._answers == {}


async def test_a_handler_that_fails_costs_its_own_request_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as (broker, address), client(address) as peer:

        def fails(*_: object) -> None:
            raise ZeroDivisionError("a mistake")

        assert broker._parts is not None
        broker._parts.dispatcher._handlers[9998] = fails
        with caplog.at_level(logging.ERROR, "pocketmq.broker"):
            failed = peer.post(9998)
            sent = peer.post(SEND, send_fields("T"), b"x")
            answer = await peer.answer(failed)
            assert (await peer.answer(sent)).code == 0
        assert (answer.code, answer.remark) == (
            1,
            "the broker failed on this request; see its log",
        )
        assert "a mistake" in caplog.text


async def test_requests_of_any_kind_may_share_one_write() -> None:
    async with running() as (_, address), client(address) as peer:
        first = peer.post(SEND, send_fields("T"), b"one")
        second = peer.post(PULL, pull_fields("T", sysFlag="4"))
        third = peer.post(SEND, send_fields("T"), b"two")
        fourth = peer.post(PULL, pull_fields("T", sysFlag="4"))
        assert (await peer.answer(first)).code == (await peer.answer(third)).code == 0
        early, late = await peer.answer(second), await peer.answer(fourth)
        assert [record.stored_body for record in records(early)] == [b"one"]
        assert [record.stored_body for record in records(late)] == [b"one", b"two"]


async def test_a_flood_from_one_client_leaves_room_for_another() -> None:
    """One of thousands of requests under way does not make another client wait for all of them."""
    patient: dict[str, Any] = {"broker_fast_failure_enable": False}
    async with (
        running(**patient) as (broker, address),
        client(address) as flood,
        client(address) as other,
    ):
        await flood.ask(SEND, send_fields("T"), b"x")
        many = [flood.post(SEND, send_fields("T"), b"x") for _ in range(5000)]
        await other.ask(SEND, send_fields("T"), b"y")
        assert broker.state.traffic.messages_in < 2500
        for number in many:
            assert (await flood.answer(number)).code == 0


# Safety


def put_store_on(
    monkeypatch: pytest.MonkeyPatch, make_disk: Callable[[Path], Disk], path: Path
) -> list[Disk]:
    """Let brokers open their stores on a disk that can fail."""
    disks: list[Disk] = []

    def open_store(config: BrokerConfig, data: Path | None, store_host: bytes) -> MessageStore:
        del data
        path.mkdir(exist_ok=True)
        disks.append(make_disk(path))
        return MessageStore.open(
            path,
            StoreOptions(segment_size=1 << 20, sync=config.sync_flush),
            store_host=store_host,
            flusher=Flusher(asyncio.get_running_loop().call_soon_threadsafe),
            disk=disks[0],
        )

    monkeypatch.setattr(broker_module, "open_store", open_store)
    return disks


async def test_a_message_that_cannot_be_written_is_not_acknowledged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disks = put_store_on(monkeypatch, FullDisk, tmp_path / "store")
    async with running() as (_, address), client(address) as peer:
        assert (await peer.ask(SEND, send_fields("T"), b"before")).code == 0
        (disk,) = disks
        assert isinstance(disk, FullDisk)
        disk.full = True
        numbers = [peer.post(SEND, send_fields("T"), b"lost") for _ in range(3)]
        for number in numbers:
            answer = await peer.answer(number)
            assert (answer.code, answer.remark, answer.ext) == (14, NO_ROOM, REGION)
        disk.full = False
        assert (await peer.ask(SEND, send_fields("T"), b"after")).ext["queueOffset"] == "1"
        pulled = await peer.ask(PULL, pull_fields("T", sysFlag="4"))
        assert [record.stored_body for record in records(pulled)] == [b"before", b"after"]


async def test_a_read_that_finds_the_disk_full_costs_the_sends_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reading writes first; when that fails the sends of the same batch must not be promised."""
    disks = put_store_on(monkeypatch, FullDisk, tmp_path / "store")
    async with running() as (_, address), client(address) as peer:
        assert (await peer.ask(SEND, send_fields("T"), b"before")).code == 0
        (disk,) = disks
        assert isinstance(disk, FullDisk)
        disk.full = True
        sent = peer.post(SEND, send_fields("T"), b"lost")
        pulled = peer.post(PULL, pull_fields("T", sysFlag="4"))
        assert (await peer.answer(pulled)).code == 14
        assert (await peer.answer(sent)).code == 14
        disk.full = False
        answer = await peer.ask(PULL, pull_fields("T", sysFlag="4"))
        assert [record.stored_body for record in records(answer)] == [b"before"]


class OnceFullDisk(FullDisk):
    """Has room again right after it refused one write."""

    _full: bool = False

    @property
    def full(self) -> bool:
        now, self._full = self._full, False
        return now

    @full.setter
    def full(self, full: bool) -> None:
        self._full = full


async def test_a_waiting_pull_gets_what_was_stored_in_a_turn_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its sender is refused and sends again: twice is allowed, late is not."""
    disks = put_store_on(monkeypatch, OnceFullDisk, tmp_path / "store")
    async with running() as (broker, address), client(address) as peer, client(address) as reader:
        assert (await peer.ask(SEND, send_fields("T"), b"before")).code == 0
        waiting = reader.post(PULL, pull_fields("T", 1))
        await until(lambda: len(broker.state.waiting) == 1, "the pull")
        (disk,) = disks
        assert isinstance(disk, OnceFullDisk)
        disk.full = True
        sent = peer.post(SEND, send_fields("T"), b"lost")
        pulled = peer.post(PULL, pull_fields("T", sysFlag="4"))
        again = peer.post(SEND, send_fields("T"), b"kept")
        for number in (sent, pulled, again):
            assert (await peer.answer(number)).code == 14
        answer = await asyncio.wait_for(reader.answer(waiting), 10)
        assert [record.stored_body for record in records(answer)] == [b"kept"]


class SlowDisk(Disk):
    """Syncs when the test says so."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.may_sync = threading.Event()
        self.syncs = 0

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        return SlowFile(self, path, size, create=create)


class SlowFile(DiskFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: SlowDisk, path: Path, size: int, *, create: bool) -> None:
        self._disk = disk
        super().__init__(path, size, create=create)

    def sync(self) -> None:
        if "commitlog" in self.path.parts:  # upkeep brings indexes to the device now and then
            self._disk.syncs += 1
        assert self._disk.may_sync.wait(20)
        super().sync()


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], SlowDisk]:
    disks = put_store_on(monkeypatch, SlowDisk, tmp_path / "store")

    def disk() -> SlowDisk:
        assert isinstance(disks[0], SlowDisk)
        return disks[0]

    return disk


async def unanswered(peer: Client, *numbers: int) -> None:
    await peer.ask(30, {"topic": "T", "queueId": "0"})
    assert not peer._answers.keys() & set(numbers)


async def test_a_synced_message_is_acknowledged_after_the_sync_and_not_before(
    slow_disk: Callable[[], SlowDisk],
) -> None:
    async with running(flush_disk_type="SYNC_FLUSH") as (broker, address), client(address) as peer:
        await no_chores(broker)  # a checkpoint would sync, too
        texts = ("", "AWAIT\1false\2", "WAIT\1true\2AWAIT\1false", "WAIT\1falsehood")
        numbers = [peer.post(SEND, send_fields("T", text), b"x") for text in texts]
        for text in ("WAIT\1false\2", "TAGS\1t\2WAIT\1false", "WAIT\1false\2AWAIT\1false"):
            careless = peer.post(SEND, send_fields("T", text), b"x")
            assert (await peer.answer(careless)).code == 0
        await until(lambda: slow_disk().syncs == 1, "the sync to begin")
        later = [peer.post(SEND, send_fields("T"), b"x") for _ in range(20)]
        await unanswered(peer, *numbers, *later)
        slow_disk().may_sync.set()
        for number in numbers + later:
            assert (await peer.answer(number)).code == 0
        assert slow_disk().syncs == 2  # one for those before, one for all that came meanwhile


class WatchedDisk(Disk):
    """Syncs at once, and notes on which thread."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.threads: list[threading.Thread] = []

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        return WatchedFile(self, path, size, create=create)


class WatchedFile(DiskFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: WatchedDisk, path: Path, size: int, *, create: bool) -> None:
        self._disk = disk
        super().__init__(path, size, create=create)

    def sync(self) -> None:
        self._disk.threads.append(threading.current_thread())


async def test_with_a_quick_device_a_single_request_is_synced_without_another_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disks = put_store_on(monkeypatch, WatchedDisk, tmp_path / "store")
    async with running(flush_disk_type="SYNC_FLUSH") as (broker, address), client(address) as peer:
        await no_chores(broker)
        (disk,) = disks
        assert isinstance(disk, WatchedDisk)
        here = threading.current_thread()
        while here not in disk.threads:
            assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0
        assert len(disk.threads) > 16
        assert broker.state.store.synced == broker.state.store.log.written
        numbers = [peer.post(SEND, send_fields("T"), b"x") for _ in range(2)]
        for number in numbers:
            assert (await peer.answer(number)).code == 0
        assert disk.threads[-1] is not here


@leaping
async def test_a_slow_sync_is_answered_with_flush_disk_timeout(
    slow_disk: Callable[[], SlowDisk],
) -> None:
    async with running(flush_disk_type="SYNC_FLUSH") as (broker, address), client(address) as peer:
        number = peer.post(SEND, send_fields("T", "UNIQ_KEY\1K\2"), b"x")
        await until(lambda: slow_disk().syncs == 1, "the sync to begin")
        await leap(5.1)
        answer = await peer.answer(number)
        assert (answer.code, answer.ext["queueOffset"], answer.ext["transactionId"]) == (
            10,
            "0",
            "K",
        )
        slow_disk().may_sync.set()
        await until(lambda: broker.state.store.synced > 0, "the sync to end")
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0


async def test_a_failed_sync_is_answered_with_flush_disk_timeout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disks = put_store_on(monkeypatch, FullDisk, tmp_path / "store")
    async with running(flush_disk_type="SYNC_FLUSH") as (_, address), client(address) as peer:
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0
        (disk,) = disks
        assert isinstance(disk, FullDisk)
        disk.broken = True
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 10
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 14
        disk.broken = False


async def test_too_much_that_waits_for_the_device_is_refused_at_once(
    slow_disk: Callable[[], SlowDisk],
) -> None:
    settings: dict[str, Any] = {"flush_disk_type": "SYNC_FLUSH", "max_unsynced_messages": 2}
    async with running(**settings) as (_, address), client(address) as peer:
        numbers = [peer.post(SEND, send_fields("T"), b"x") for _ in range(3)]
        await unanswered(peer, *numbers)
        answer = await peer.ask(SEND, send_fields("T"), b"x")
        assert answer.code == 2
        assert answer.remark == "[OVERLOAD]system busy, start flow control for a while"
        assert answer.ext == REGION
        slow_disk().may_sync.set()
        for number in numbers:
            assert (await peer.answer(number)).code == 0
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0


async def test_stopping_waits_for_the_sync_that_answers_need(
    slow_disk: Callable[[], SlowDisk],
) -> None:
    async with running(flush_disk_type="SYNC_FLUSH") as (broker, address):
        reader, writer = await asyncio.open_connection(*address)
        peer = Client(reader, writer)
        number = peer.post(SEND, send_fields("T"), b"x")
        await until(lambda: slow_disk().syncs == 1, "the sync to begin")
        stopping = asyncio.create_task(broker.stop())
        await asyncio.sleep(0)
        slow_disk().may_sync.set()
        assert (await peer.answer(number)).code == 0
        await peer.close()
        await stopping
