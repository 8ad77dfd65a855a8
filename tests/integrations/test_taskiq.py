"""Tasks of Taskiq on a real cluster, with real workers."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("taskiq")

from taskiq.api import run_receiver_task
from taskiq.exceptions import SendTaskError

from pocketmq import Cluster
from pocketmq.client.producer_options import ProducerSettings
from pocketmq.errors import InvalidInput
from pocketmq.integrations.taskiq import TaskiqBroker
from tests.loops import until

ROOT = Path(__file__).parents[2]
PATIENT: ProducerSettings = {"send_timeout": 30.0}
"""The cluster is not on a test's loop: it may get no processor while that waits for it."""


@contextmanager
def worker(address: str, notes: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a worker until the end, as its documentation says."""
    command = [sys.executable, "-m", "taskiq", "worker", "tests.integrations.tasks:broker"]
    process = subprocess.Popen(
        [*command, "--workers", "1", "--log-level", "ERROR"],
        cwd=ROOT,
        env=os.environ | {"TASKS_AT": address, "TASKS_NOTES": str(notes), "PYTHONPATH": _path()},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _path() -> str:
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


@pytest.fixture
def broker(rocketmq: Cluster, rocketmq_topic: str) -> TaskiqBroker:
    return TaskiqBroker(
        rocketmq.address, topic=rocketmq_topic, group=f"g-{rocketmq_topic}", producer=PATIENT
    )


async def test_tasks_run_and_return_what_they_should(broker: TaskiqBroker) -> None:
    seen: list[tuple[int, str]] = []

    @broker.task
    async def bill(order: int, *, currency: str) -> None:
        seen.append((order, currency))

    receiver = asyncio.create_task(run_receiver_task(broker, run_startup=True))
    await until(lambda: broker._consumer is not None and broker._consumer.running, "a start")
    for order in range(20):
        await bill.kiq(order, currency="EUR")
    await until(lambda: len(seen) >= 20, "20 tasks")
    assert sorted(seen) == [(order, "EUR") for order in range(20)]
    receiver.cancel()
    await asyncio.wait({receiver})
    await broker.shutdown()


async def test_a_delayed_task_waits(broker: TaskiqBroker) -> None:
    seen: list[float] = []

    @broker.task
    async def later() -> None:
        seen.append(time.monotonic())  # brokers count real time, in which the loop may stand still

    receiver = asyncio.create_task(run_receiver_task(broker, run_startup=True))
    await until(lambda: broker._consumer is not None and broker._consumer.running, "a start")
    started = time.monotonic()
    await later.kicker().with_labels(delay=1).kiq()
    await until(lambda: seen, "the task")
    assert seen[0] - started >= 0.9
    receiver.cancel()
    await asyncio.wait({receiver})
    await broker.shutdown()


async def test_a_delay_is_a_number_of_seconds(broker: TaskiqBroker) -> None:
    @broker.task
    async def later() -> None: ...

    await broker.startup()
    with pytest.raises(SendTaskError) as refused:
        await later.kicker().with_labels(delay="soon").kiq()
    assert isinstance(refused.value.__cause__, InvalidInput)
    assert str(refused.value.__cause__) == (
        "the task label 'delay' must be a number of seconds, not 'soon'"
    )
    await broker.shutdown()


@pytest.mark.timeout(180)
def test_tasks_of_a_killed_worker_run_in_another_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with Cluster() as cluster:
        asyncio.run(_send_all(cluster.address))
        with worker(cluster.address, notes) as first:
            assert first.wait(60) == -9
        with worker(cluster.address, notes):
            asyncio.run(_until_noted(notes, set(range(40))))


async def _send_all(address: str) -> None:
    broker = TaskiqBroker(address, topic="tasks", group="workers", producer=PATIENT)
    note = broker.register_task(_nothing, task_name="tests.integrations.tasks:note")
    end = broker.register_task(_nothing, task_name="tests.integrations.tasks:end_the_worker")
    await broker.startup()
    for number in range(40):
        await (end if number == 20 else note).kiq(number)
    await broker.shutdown()


async def _nothing(number: int) -> None:
    """Stand for a task of the workers."""


async def _until_noted(notes: Path, numbers: set[int]) -> None:
    await until(
        lambda: {int(word) for word in notes.read_text().split()} == numbers, "all tasks", 60
    )
