"""Who the members are, and which queues they report to have.

It serves speed and stickiness, never safety: whatever stands here, only locks let a member run a
queue. What the bus brings is bounded: queues that no route has are ignored, and so are members
beyond a limit.
"""

from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from pocketmq.balance.handover.events import Listed
from pocketmq.balance.handover.messages import MOST_OTHERS, State, is_ours, lock_owner
from pocketmq.balance.handover.settings import HandoverSettings, HandoverTimes
from pocketmq.model import MessageQueue

SUPERSEDED = 0.5
"""Seconds by which a list of members may be older than a hello: until then a member that is missing
from it is not taken for gone."""
MOST_TOLD = 1024
"""Boots whose reports are kept."""
FORGOTTEN = 600.0
"""Seconds after which a boot that is gone is forgotten."""


class Told(msgspec.Struct, frozen=True):
    """What one boot of a member reported last."""

    client_id: str
    heard: float
    number: int = -1
    """-1: nothing yet, or only by another member."""
    held: frozenset[MessageQueue] = frozenset()
    draining: frozenset[MessageQueue] = frozenset()
    bye: float | None = None
    """It said goodbye; until this time its queues wait for it."""
    superseded: float | None = None
    """When another process said hello that has the same client id and started later."""


class Table(msgspec.Struct, frozen=True):
    """Members as brokers list them, and what they reported, by lock owner."""

    listed: tuple[str, ...] = ()
    """Repeated where a broker lists an id repeatedly."""
    since: dict[str, float] = {}
    """When each listed member was seen first."""
    told: dict[str, Told] = {}
    gone: dict[str, float] = {}
    """Lock owners that are on no list, with the time when that was noticed."""
    grown: float = 0.0
    """When the last member came."""
    known: bool = False
    """Whether all brokers listed the members once, or enough time has passed since some did."""


def listed(table: Table, settings: HandoverSettings, event: Listed, now: float) -> Table:
    """Note the members; those that are missing are gone, if all brokers answered."""
    members, me, own = event.members, settings.client_id, settings.owner
    if not event.complete:
        missing = [member for member in table.listed if member not in set(members)]
        members = (*members, *missing)
    present = set(members)
    came = [member for member in present if member not in table.since and member != me]
    since = {member: table.since.get(member, now) for member in present}
    gone = dict(table.gone)
    for owner, word in table.told.items():
        count = members.count(word.client_id) if word.client_id in present else 0
        # A list may be older than the hello of a member that it does not show.
        missing_long = word.client_id in table.since or now - word.heard >= SUPERSEDED
        vanished = count == 0 and (missing_long or owner in gone)
        if vanished or (count == 1 and _ended(word, now)):
            gone.setdefault(owner, now)
        else:
            gone.pop(owner, None)
    gone.pop(own, None)
    over = {owner for owner, at in gone.items() if now - at >= FORGOTTEN}
    gone = {owner: at for owner, at in gone.items() if owner not in over}
    told = {owner: word for owner, word in table.told.items() if owner not in over}
    return replace(
        table,
        listed=tuple(sorted(members)),
        since=since,
        told=told,
        gone=gone,
        grown=now if came else table.grown,
        known=table.known or event.complete,
    )


def _ended(word: Told, now: float) -> bool:
    """Return whether a boot must have ended if its id is listed only once: for the later one.

    Of boots that only others told about nobody knows which is the later. A list that is about as
    old as the hello of the later boot may not show that one yet.
    """
    return word.superseded is not None and now - word.superseded >= SUPERSEDED


def hello(table: Table, sender: str, boot: str, now: float) -> Table:
    """Note that a member has started; a process that had its id before should have ended."""
    told = {
        owner: replace(word, superseded=now)
        if word.client_id == sender and word.superseded is None
        else word
        for owner, word in table.told.items()
    }
    table = replace(table, told=told)
    owner = lock_owner(sender, boot)
    if owner in table.told and table.told[owner].number >= 0:
        word = replace(table.told[owner], heard=now, superseded=None)
    else:
        word = Told(sender, now, 0)
    return _with(table, owner, word)


def state(
    table: Table,
    sender: str,
    boot: str,
    message: State,
    *,
    queues: Collection[MessageQueue],
    me: str,
    now: float,
) -> Table:
    """Note what a member has, and what it knows of others that never reported to this one."""
    owner = lock_owner(sender, boot)
    before = table.told.get(owner)
    if before is None or message.number > before.number:
        held = frozenset(queue for queue in message.held if queue in queues)
        draining = frozenset(queue for queue in message.draining if queue in queues)
        bye = before.bye if before else None
        if before is not None and bye is not None and bye > now:
            held = before.held  # these wait for it, though it has let them go
        # A boot that answers a hello in its own name lives: the hello was forged, or repeated. A
        # state from before, on another bus, is followed there by the same hello. Only of this
        # member's own id no hello is heard again.
        superseded = before.superseded if before and sender == me else None
        word = Told(sender, now, message.number, held, draining, bye, superseded)
        table = _with(table, owner, word)
    for name, others in message.table.items():
        client_id, _, _ = name.rpartition("#")
        if name not in table.told and is_ours(client_id):
            held = frozenset(queue for queue in others if queue in queues)
            left = message.away.get(name)
            bye = None if left is None else now + left
            # What others know of this member's own id is an earlier process of its own.
            superseded = now if client_id == me else None
            word = Told(client_id, now, -1, held, bye=bye, superseded=superseded)
            table = _with(table, name, word)
    return table


def goodbye(table: Table, sender: str, boot: str, back_within: float, now: float) -> Table:
    """Note that a member leaves, and how long its queues wait for it."""
    owner = lock_owner(sender, boot)
    word = table.told.get(owner, Told(sender, now))
    return _with(table, owner, replace(word, heard=now, bye=now + back_within))


def _with(table: Table, owner: str, word: Told) -> Table:
    if owner not in table.told and len(table.told) >= MOST_TOLD:
        # Those that are gone make room. Their locks end by themselves, if they are not free yet.
        oldest = min(table.gone.keys() & table.told.keys(), key=table.gone.__getitem__, default="")
        if not oldest:
            return table
        told = {name: each for name, each in table.told.items() if name != oldest}
        gone = {name: at for name, at in table.gone.items() if name != oldest}
        return replace(table, told={**told, owner: word}, gone=gone)
    return replace(table, told={**table.told, owner: word})


def worth_telling(table: Table, times: HandoverTimes, now: float) -> dict[str, Told]:
    """Return what newcomers are told of others, no more than they accept.

    Who is gone for long is left out: members forget it at different times, and would tell each
    other of it without end.
    """
    words = {
        owner: word
        for owner, word in table.told.items()
        if word.held
        and (now - table.gone.get(owner, now) < times.gone_names or (word.bye or 0.0) > now)
    }
    if len(words) <= MOST_OTHERS:
        return words
    ranked = sorted(words, key=lambda owner: (owner in table.gone, -words[owner].heard))
    return {owner: words[owner] for owner in ranked[:MOST_OTHERS]}


def living(table: Table) -> dict[str, Told]:
    """Return the words of boots that are not gone, as far as their members are listed.

    What others told about a member counts only until it speaks itself.
    """
    present = set(table.listed)
    words = {
        owner: word
        for owner, word in table.told.items()
        if word.client_id in present and owner not in table.gone
    }
    speak = {word.client_id for word in words.values() if word.number >= 0}
    return {
        owner: word
        for owner, word in words.items()
        if word.number >= 0 or word.client_id not in speak
    }


def leaving(words: Mapping[str, Told]) -> set[str]:
    """Return the members that said goodbye and did not start again."""
    latest: dict[str, Told] = {}
    for word in words.values():
        if word.client_id not in latest or word.heard >= latest[word.client_id].heard:
            latest[word.client_id] = word
    return {client_id for client_id, word in latest.items() if word.bye is not None}


def waiting_for(table: Table, now: float) -> dict[str, float]:
    """Return the members that are away and will be back, and until when their queues wait."""
    present = set(table.listed)
    return {
        word.client_id: word.bye
        for word in table.told.values()
        if word.bye is not None and word.bye > now and word.client_id not in present
    }


def silent(table: Table, words: Mapping[str, Told], me: str, limit: float, now: float) -> set[str]:
    """Return listed members that did not say a word for a long time: they may be hung.

    If several others are silent and nobody speaks, it is the bus that is silent.
    """
    heard: dict[str, float] = {}
    for word in words.values():
        heard[word.client_id] = max(word.heard, heard.get(word.client_id, 0.0))
    others = [member for member in table.since if member != me and is_ours(member)]
    quiet = {
        member
        for member in others
        if now - max(heard.get(member, 0.0), table.since[member]) > limit
    }
    return quiet if len(others) == 1 or len(quiet) < len(others) else set()


def gone_names(table: Table, times: HandoverTimes, now: float) -> frozenset[str]:
    """Return the lock owners that are on no list, and whose leases may last."""
    return frozenset(owner for owner, at in table.gone.items() if now - at < times.gone_names)
