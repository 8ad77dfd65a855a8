"""The sessions of a process: one for each client id and event loop, shared by its members.

A member takes a lease on a session; the release of the last lease stops it.
"""

import asyncio
from collections.abc import MutableMapping
from copy import copy
from random import Random
from weakref import WeakKeyDictionary

from pocketmq.client.clock import Clock, SystemClock, new_random
from pocketmq.client.options import ClientOptions, client_id, instance_name, local_ip
from pocketmq.client.session import Session
from pocketmq.errors import InvalidInput, MQError
from pocketmq.net import Limits


class _Entry:
    """A session, its start, and the number of its leases."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.users = 0
        self.starting = asyncio.create_task(_start(session), name=f"{session.client_id}: start")


_entries: MutableMapping[asyncio.AbstractEventLoop, dict[str, _Entry]] = WeakKeyDictionary()
_stopping: set[asyncio.Task[None]] = set()


class Lease:
    """The use of a session until `release`."""

    def __init__(self, entry: _Entry) -> None:
        self.session = entry.session
        self._entry: _Entry | None = entry

    async def release(self) -> None:
        """Release the session; the last release stops it. Releasing twice is harmless.

        If the caller is cancelled, it continues in the background. Raises `ClientForked`.
        """
        if self._entry is None:
            return
        self.session.check_process()
        entry, self._entry = self._entry, None
        await _let_go(entry)


def shown(member: object, group: str, lease: Lease | None, state: str) -> str:
    """Return the `repr` of a member of a group."""
    client = "" if lease is None else f", client {lease.session.client_id}"
    return f"<{type(member).__name__} of group {group!r}{client}, {state}>"


async def lease_session(
    options: ClientOptions,
    *,
    shared_name: bool = False,
    stream: bool = False,
    hands_over: bool = False,
    clock: Clock | None = None,
    random: Random | None = None,
    limits: Limits | None = None,
) -> Lease:
    """Lease the session with the client id that follows from `options`, started if it is new.

    `shared_name` keeps the default instance name (consumers that broadcast), `stream` marks pull
    consumers, `hands_over` members with STICKY. `clock` and `random` are the session's sources of
    time and random numbers.

    Raises `InvalidInput` if there is a session of this id with other options, and
    `NameServersUnreachable` if no name server answers and the options do not allow for that.
    """
    clock = clock or SystemClock()
    name = instance_name(options.instance_name, clock, shared=shared_name)
    own_id = client_id(
        options.client_ip or local_ip(),
        name,
        options.unit_name,
        stream=stream,
        hands_over=hands_over,
    )
    entries = _entries.setdefault(asyncio.get_running_loop(), {})
    entry = entries.get(own_id)
    if entry is None:
        session = Session(
            options, own_id, clock, random or new_random(), stream=stream, limits=limits
        )
        entry = entries[own_id] = _Entry(session)
    elif differing := options.differences(entry.session.options):
        raise InvalidInput(
            f"client {own_id!r} runs with other options ({', '.join(differing)}); "
            "use the same ones, or another instance name"
        )
    entry.users += 1
    try:
        # Not `await entry.starting`: cancelling one member must not cancel the start for all.
        await asyncio.wait({entry.starting})
        failure = entry.starting.result()
    except BaseException:
        await _let_go(entry)
        raise
    if failure is not None:
        await _let_go(entry)
        raise copy(
            failure
        ) from failure.__cause__  # one for each waiter: each raises it with its own traceback
    return Lease(entry)


async def _start(session: Session) -> MQError | None:
    """Start a session and return the error, for all waiters: a task that raises would be logged."""
    try:
        await session.start()
    except MQError as error:
        return error
    return None


async def _let_go(entry: _Entry) -> None:
    entry.users -= 1
    if entry.users:
        return
    loop = asyncio.get_running_loop()
    entries = _entries.get(loop, {})
    if entries.get(entry.session.client_id) is entry:
        del entries[entry.session.client_id]
    # Out of the table first: a member that starts meanwhile gets a session of its own. The stop is
    # a task, so that it continues if the caller is cancelled.
    task = loop.create_task(_end(entry), name=f"{entry.session.client_id}: stop")
    _stopping.add(task)
    task.add_done_callback(_stopping.discard)
    await asyncio.shield(task)


async def _end(entry: _Entry) -> None:
    if not entry.starting.done():
        entry.starting.cancel()
        await asyncio.wait({entry.starting})
    if entry.session.running:
        await entry.session.stop()
