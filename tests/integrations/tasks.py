"""Tasks for a worker of Taskiq; they write down that they ran."""

import os
from pathlib import Path

from pocketmq.integrations.taskiq import TaskiqBroker

broker = TaskiqBroker(os.environ["TASKS_AT"], topic="tasks", group="workers", prefetch=4)
_NOTES = Path(os.environ["TASKS_NOTES"])


@broker.task
def note(number: int) -> None:
    """Write a number down."""
    with _NOTES.open("a") as notes:
        notes.write(f"{number}\n")


@broker.task
def end_the_worker(number: int) -> None:
    """Be killed in the middle of a task, but only the first time."""
    with _NOTES.open("a") as notes:
        notes.write(f"{number}\n")
    if _NOTES.read_text().split().count(str(number)) == 1:
        os.killpg(0, 9)
