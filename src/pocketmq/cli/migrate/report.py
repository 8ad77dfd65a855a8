"""What the commands of a migration print: plans, reports, and the progress of a copy.

Progress goes to stderr: rich's bar on a terminal, one line when piped.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from pocketmq.admin.migration.copy_run import MigrationProgress
from pocketmq.admin.migration.group_offsets import GroupMove
from pocketmq.admin.migration.migration import Outlook, TopicCopyStatus
from pocketmq.admin.migration.verifying import CopyVerdict
from pocketmq.cli.migrate.ends import Ends
from pocketmq.cli.output import TableColumn, TextPage, numbers
from pocketmq.cli.progress import ProgressBar


def plan_lines(ends: Ends, outlook: Outlook) -> list[str]:
    """Return what would be done."""
    plan = outlook.plan
    rows = []
    for topic in plan.topics:
        name = topic.topic
        held = outlook.there.get(name)
        state = "will be created" if held is None else f"exists, {held} messages"
        rows.append((name, len(topic.queues), outlook.messages[name], state))
    lines = [f"from {ends.source} to {ends.target}"]
    lines += _table(("topic", "queues", "messages", "on the target"), rows)
    made = [each.group_name for each in plan.groups]
    there = [group for group in plan.known_groups if group not in made]
    lines.append(f"groups to create: {', '.join(made) or 'none'}")
    if there:
        lines.append(f"groups that exist on the target: {', '.join(there)}")
    lines += [f"skipped: {name} ({why})" for name, why in sorted(plan.left_out.items())]
    lines += [f"note: {note}" for note in plan.notes]
    if outlook.waiting.messages:
        due = _time(outlook.waiting.last_due_ms or 0)
        lines.append(
            f"note: {outlook.waiting.messages} messages are delayed or wait for a retry, the last "
            f"until {due}; follow until then, or move them with --move-delayed"
        )
    if outlook.transactions:
        lines.append(
            "note: the source has transactions; half messages are resolved there, so follow until "
            "their producers have moved and all are resolved"
        )
    return lines + [f"problem: {problem}" for problem in plan.problems]


def copied_lines(done: MigrationProgress, *, stopped: bool) -> list[str]:
    """Return what was copied."""
    lines = [f"copied {done.copied} messages of {done.topics} topics, {done.queues} queues"]
    if done.moved_delayed:
        lines.append(f"moved {done.moved_delayed} delayed messages")
    if done.lost:
        lines.append(f"{done.lost} messages were deleted in the source before they were copied")
    lines += [
        f"topic {topic} was deleted in the source; its copies stay on the target"
        for topic in sorted(done.deleted)
    ]
    if stopped:
        lines.append(f"stopped with {done.behind} messages to go; the same command resumes")
    return lines


def group_lines(moves: Sequence[GroupMove]) -> list[str]:
    """Return where groups resume."""
    lines = []
    for each in moves:
        if not each.moved:
            lines.append(
                f"{each.group}: not changed, {each.target_members} members consume on the target"
            )
            continue
        begun = sum(queue.committed is not None for queue in each.queues)
        lines.append(
            f"{each.group}: resumes in {len(each.queues)} queues, {begun} of them with offsets; "
            f"{each.again} messages will be redelivered"
        )
        if each.source_members:
            lines.append(
                f"{each.group}: {each.source_members} members still consume in the source; stop "
                "them and run this again, or what they consume from now on is redelivered"
            )
    return lines or ["no group to move"]


def verdict_lines(verdicts: Sequence[CopyVerdict]) -> list[str]:
    """Return how both sides compare, topic by topic."""
    heads = ("queues", "source", "copies", "missing", "changed", "twice", "to come", "others")
    rows = [
        (topic, *_sums(each for each in verdicts if each.source.topic == topic))
        for topic in sorted({each.source.topic for each in verdicts})
    ]
    sound = all(each.sound for each in verdicts)
    same = sum(each.source_digest == each.target_digest for each in verdicts)
    lines = _table(("topic", *heads), [*rows, ("all", *_sums(verdicts))])
    lines.append(f"digests agree in {same} of {len(verdicts)} queues")
    lines.append("nothing is missing, nothing is changed" if sound else "NOT the same")
    to_come = sum(each.behind for each in verdicts)
    if to_come:
        lines.append(f"compared up to the last copy: {to_come} messages are still to be copied")
    return lines


def _sums(verdicts: Iterable[CopyVerdict]) -> tuple[int, ...]:
    each = list(verdicts)
    return (
        len(each),
        sum(v.messages for v in each),
        sum(v.copies for v in each),
        sum(v.missing for v in each),
        sum(v.different for v in each),
        sum(v.duplicates for v in each),
        sum(v.behind for v in each),
        sum(v.others for v in each),
    )


def status_lines(rows: Sequence[TopicCopyStatus]) -> list[str]:
    """Return the progress of a migration, topic by topic."""
    counts = [(each.topic, each.queues, each.copied, each.behind, each.lost) for each in rows]
    return _table(("topic", "queues", "copied", "to go", "lost"), counts)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    page = TextPage(styled=False)
    page.table([TableColumn(heads[0]), *numbers(*heads[1:])], rows)
    return page.lines()


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "seconds")


_EVERY = 0.5


@asynccontextmanager
async def showing_progress(counts: MigrationProgress, *, following: bool) -> AsyncIterator[None]:
    """Show how far a copy is while it runs."""
    if not sys.stderr.isatty() and not following:
        yield
        return
    with ProgressBar("copying", "messages") as bar:
        shown = sys.stderr.isatty()
        work = _draw(counts, bar, following=following) if shown else _announce(counts)
        task = asyncio.create_task(work)
        try:
            yield
        finally:
            task.cancel()


async def _draw(counts: MigrationProgress, bar: ProgressBar, *, following: bool) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        bar.say("following" if following and counts.caught_up else "copying")
        bar.update(counts.copied, counts.copied + counts.behind)


async def _announce(counts: MigrationProgress) -> None:
    """Report once that a copy has caught up."""
    while True:
        await asyncio.sleep(_EVERY)
        if counts.caught_up:
            break
    sys.stderr.write(f"caught up after {counts.copied} messages; following\n")
    sys.stderr.flush()
