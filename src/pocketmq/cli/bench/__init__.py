"""`pocketmq bench`: throughput and latency of a cluster, ours or Apache's, as a table."""

import sys
from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli.client_command import prepare_client
from pocketmq.cli.commands import HELP, FiniteRange, json_option, namesrv_option
from pocketmq.cli.connection_options import Entry, entry_options
from pocketmq.errors import MQError

if TYPE_CHECKING:
    from pocketmq.cli.bench.measuring import BenchPlan, Measurement
    from pocketmq.client.options import ClientOptions

_LARGEST = 1 << 20


@click.command("bench", context_settings=HELP)
@namesrv_option()
@click.option(
    "-t", "--topic", default="pocketmq_bench", show_default=True, help="Topic to send to."
)
@click.option(
    "--size",
    type=click.IntRange(8, _LARGEST),
    metavar="BYTES",
    default=100,
    show_default=True,
    help="Size of a message body.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 3600),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="Duration of each kind of send, and of the end-to-end measurement.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 4096),
    metavar="N",
    default=64,
    show_default=True,
    help="Concurrent sends.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1024),
    metavar="N",
    default=256,
    show_default=True,
    help="Messages per batch; fewer if they exceed 4 MiB.",
)
@json_option("Print one JSON object per measurement.")
@entry_options
def command(
    *,
    namesrv: str,
    topic: str,
    size: int,
    seconds: float,
    in_flight: int,
    batch: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure sends, consumption of a backlog, and end-to-end latency.

    The topic is created if it does not exist; the messages stay in it. CPU is this client's time
    per message.
    """
    from pocketmq.cli.bench.measuring import BenchPlan
    from pocketmq.client.options import ClientOptions
    from pocketmq.net import loops

    prepare_client()
    entry = Entry.taken_from(given)
    client = ClientOptions(name_servers=namesrv, credentials=entry.credentials, tls=entry.tls)
    plan = BenchPlan(topic=topic, size=size, seconds=seconds, in_flight=in_flight, batch=batch)
    try:
        loops.run(_show(client, plan, as_json=as_json))
    except MQError:  # a send that timed out is a TimeoutError, too
        raise
    except TimeoutError:
        raise click.ClickException(
            f"timed out waiting for the messages of topic {topic!r}"
        ) from None


async def _show(client: "ClientOptions", plan: "BenchPlan", *, as_json: bool) -> None:
    from pocketmq.cli.bench.measuring import measure

    # Lines of our own, not a rich table: each is printed as soon as it is measured. No bar, either,
    # which would take processor time from what is measured.
    if not as_json:
        print(f"{f'{plan.size} B':<26}{'messages/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}")
        sys.stdout.flush()
    async for row in measure(client, plan):
        print(_json(row) if as_json else _line(row), flush=True)


def _line(row: "Measurement") -> str:
    times = "".join("" if t is None else f"{t:9.2f}" for t in (row.p50_ms, row.p99_ms))
    return f"{row.what:<26}{row.rate:>12,.0f}{times:>18}{row.cpu_us:>9.1f}"


def _json(row: "Measurement") -> str:
    import msgspec

    fields = {"rate": round(row.rate, 1)} | msgspec.structs.asdict(row)
    return msgspec.json.encode(fields).decode()
