"""`pocketmq store`: check and repair the directory of a stopped broker."""

import sys
from pathlib import Path

import click
import msgspec

from pocketmq.cli.commands import HELP, CommandGroup
from pocketmq.cli.output import printable
from pocketmq.cli.progress import ProgressBar


@click.group("store", cls=CommandGroup, context_settings=HELP)
def command() -> None:
    """Check or repair the directory of a broker that is not running."""


@command.command("check")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--repair", is_flag=True, help="Rebuild metadata and indexes from the commit log.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per store.")
def check(*, directory: Path, repair: bool, as_json: bool) -> int:
    """Verify every record, queue and index of a store.

    Also summarises its contents. DIRECTORY is a broker's, or one that holds the brokers of a
    cluster. Nothing is changed without --repair, which moves files aside and deletes none. Exits
    with 1 if something is damaged.
    """
    from pocketmq.broker.upkeep.stored_formats import check_broker_store
    from pocketmq.store.check_values import CheckReport
    from pocketmq.store.checking import find_stores

    def show(report: CheckReport) -> None:
        if as_json:
            sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
        else:
            _show(report)

    worst = 0
    for path in find_stores(directory):
        with ProgressBar(f"checking {path}", "bytes") as bar:
            report = check_broker_store(path, bar.update)
        show(report)
        if not report.sound and repair:
            with ProgressBar(f"repairing {path}"):
                _repair(path)
            with ProgressBar(f"checking {path}", "bytes") as bar:
                report = check_broker_store(path, bar.update)
            show(report)
        worst = max(worst, 0 if report.sound else 1)
    return worst


def _show(report: object) -> None:
    from pocketmq.store.check_values import CheckReport

    assert isinstance(report, CheckReport)
    click.echo(f"store {printable(report.path)}")
    for part, line in report.figures.items():
        click.echo(f"  {part:<10} {line}")
    for finding in report.findings:
        click.echo(f"{finding.severity.value:<8} {finding.part}: {printable(finding.text)}")
    click.echo("sound" if report.sound else "damaged")


def _repair(path: Path) -> None:
    from pocketmq.broker.upkeep.stored_formats import repair_broker_store

    done = repair_broker_store(path)
    lines = [f"repaired; the damaged files are in {done.kept_in}"]
    if not done.kept_settings:
        lines += [
            f"rebuilt from the commit log: {', '.join(done.topics) or 'no topics'}",
            "lost: settings and offsets of groups, users and access rules",
        ]
    lines.append("the next start will read the whole commit log")
    for line in lines:
        click.echo(printable(line), err=True)
