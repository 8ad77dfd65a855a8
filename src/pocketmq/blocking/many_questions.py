"""Many questions at once: the requests of each step go to each server together.

A round trip for each of a thousand queues is what makes a reader of many queues slow. Errors are
returned beside results, because one broker that is down must not hide what the others have said.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pocketmq.client.questions.asking import Ask, Question
from pocketmq.errors import MQError
from pocketmq.protocol import Command

K = TypeVar("K")
T = TypeVar("T")

TOGETHER = 128
"""Requests that are sent before the first response is read: they fit into the sockets' buffers."""

Outcome = Command | MQError
Exchange = Callable[[str, Sequence[Ask]], Sequence[Outcome]]
"""Asks the server at an address; returns a response or an error for each."""


def ask_each(
    questions: Mapping[K, Question[T]], address_of: Callable[[Ask], str], exchange: Exchange
) -> dict[K, T | MQError]:
    """Return the result of each question, or its error, which is not retried."""
    done: dict[K, T | MQError] = {}
    asked: dict[K, Ask] = {}
    for key, question in questions.items():
        _step(done, asked, key, question, None)
    while asked:
        by_address: dict[str, list[K]] = {}
        now, asked = asked, {}
        for key, each in now.items():
            try:
                by_address.setdefault(address_of(each), []).append(key)
            except MQError as error:
                _step(done, asked, key, questions[key], error)
        for address, keys in by_address.items():
            for start in range(0, len(keys), TOGETHER):
                some = keys[start : start + TOGETHER]
                outcomes = exchange(address, [now[key] for key in some])
                for key, outcome in zip(some, outcomes, strict=True):
                    _step(done, asked, key, questions[key], outcome)
    return {key: done[key] for key in questions}


def _step(
    done: dict[K, T | MQError],
    asked: dict[K, Ask],
    key: K,
    question: Question[T],
    outcome: Outcome | None,
) -> None:
    """Resume a question with the outcome of its last request; store its next one, or its result."""
    try:
        if isinstance(outcome, MQError):
            asked[key] = question.throw(outcome)
        else:
            asked[key] = question.send(outcome)  # type: ignore[arg-type] # None starts it
    except StopIteration as end:
        done[key] = end.value
    except MQError as error:
        done[key] = error
