"""What the commands of a migration say."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pocketmq.admin.migration.copy_run import MigrationProgress
from pocketmq.admin.migration.group_offsets import GroupMove
from pocketmq.admin.migration.migration import Outlook, TopicCopyStatus
from pocketmq.admin.migration.verifying import CopyVerdict
from pocketmq.cli.migrate.ends import Ends


def plan_lines(ends: Ends, outlook: Outlook) -> list[str]:
    """Tell what would be done."""
    plan = outlook.plan
    rows = [("topic", "queues", "messages", "on the target")]
    for topic in plan.topics:
        name = topic.topic
        state = f"exists, {outlook.there[name]} messages" if name in outlook.there else "is made"
        rows.append((name, str(len(topic.queues)), str(outlook.messages[name]), state))
    lines = [f"from {ends.source} to {ends.target}", *_table(rows)]
    made = [each.group_name for each in plan.groups]
    there = [group for group in plan.known_groups if group not in made]
    lines.append(f"groups that are made: {', '.join(made) or 'none'}")
    if there:
        lines.append(f"groups that exist on the target: {', '.join(there)}")
    lines += [f"left behind: {name} ({why})" for name, why in sorted(plan.left_out.items())]
    lines += [f"note: {note}" for note in plan.notes]
    if outlook.waiting.messages:
        due = _moment(outlook.waiting.last_due_ms or 0)
        lines.append(
            f"note: {outlook.waiting.messages} messages wait to be delivered or tried again, the "
            f"last until {due}; follow until then, or move them with --move-delayed"
        )
    if outlook.transactions:
        lines.append(
            "note: transactions are used here; half messages end in the source, so follow until "
            "their producers have moved and theirs have ended"
        )
    return lines + [f"problem: {problem}" for problem in plan.problems]


def copied_lines(done: MigrationProgress, *, stopped: bool) -> list[str]:
    """Tell what was done."""
    lines = [f"copied {done.copied} messages of {done.topics} topics, {done.queues} queues"]
    if done.moved_delayed:
        lines.append(f"moved {done.moved_delayed} messages that wait to be delivered")
    if done.lost:
        lines.append(f"{done.lost} messages were gone from the source before they were copied")
    lines += [
        f"topic {topic} was deleted in the source; what was copied of it stays"
        for topic in sorted(done.deleted)
    ]
    if stopped:
        lines.append(
            f"stopped with {done.behind} messages to go; the same command goes on from here"
        )
    return lines


def group_lines(moves: Sequence[GroupMove]) -> list[str]:
    """Tell where groups go on."""
    lines = []
    for each in moves:
        if not each.moved:
            lines.append(
                f"{each.group}: left alone, {each.target_members} members consume on the target"
            )
            continue
        begun = sum(queue.committed is not None for queue in each.queues)
        lines.append(
            f"{each.group}: goes on in {len(each.queues)} queues, {begun} of them begun; "
            f"{each.again} messages will come again"
        )
        if each.source_members:
            lines.append(
                f"{each.group}: {each.source_members} members still consume in the source; stop "
                "them and run this again, or what they consume from now on comes again"
            )
    return lines or ["no group to move"]


def verdict_lines(verdicts: Sequence[CopyVerdict]) -> list[str]:
    """Tell how both sides compare, topic by topic."""
    heads = (
        "topic",
        "queues",
        "source",
        "copies",
        "missing",
        "changed",
        "twice",
        "to come",
        "others",
    )
    rows: list[tuple[str, ...]] = [
        (topic, *_sums(each for each in verdicts if each.source.topic == topic))
        for topic in sorted({each.source.topic for each in verdicts})
    ]
    rows = [heads, *rows, ("all", *_sums(verdicts))]
    sound = all(each.sound for each in verdicts)
    same = sum(each.source_digest == each.target_digest for each in verdicts)
    lines = _table(rows)
    lines.append(f"digests agree in {same} of {len(verdicts)} queues")
    lines.append("nothing is missing, nothing is changed" if sound else "NOT the same")
    to_come = sum(each.behind for each in verdicts)
    if to_come:
        lines.append(f"as far as it was copied: {to_come} messages of the source are to come")
    return lines


def _sums(verdicts: Iterable[CopyVerdict]) -> tuple[str, ...]:
    each = list(verdicts)
    return (
        str(len(each)),
        str(sum(v.messages for v in each)),
        str(sum(v.copies for v in each)),
        str(sum(v.missing for v in each)),
        str(sum(v.different for v in each)),
        str(sum(v.duplicates for v in each)),
        str(sum(v.behind for v in each)),
        str(sum(v.others for v in each)),
    )


def status_lines(rows: Sequence[TopicCopyStatus]) -> list[str]:
    """Tell how far a migration is, topic by topic."""
    counts = [(each.topic, each.queues, each.copied, each.behind, each.lost) for each in rows]
    heads = ("topic", "queues", "copied", "to go", "lost")
    return _table([heads, *(tuple(map(str, row)) for row in counts)])


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in rows
    ]


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "seconds")
