"""`pocketmq bench`: throughput and latency of a cluster, ours or Apache's, as a table."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from pocketmq.cli.entry import Entry, entry_options
from pocketmq.cli.options import FiniteRange, prepare_client

if TYPE_CHECKING:
    from pocketmq.cli.bench.measuring import BenchPlan, Row
    from pocketmq.client.options import ClientOptions

_LARGEST = 1 << 20


@click.command("bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-n",
    "--namesrv",
    metavar="HOST:PORT",
    default="",
    help="Name server, several joined by ';'; usually the environment's NAMESRV_ADDR.",
)
@click.option("-t", "--topic", default="pocketmq_bench", show_default=True, help="Topic to fill.")
@click.option(
    "--size",
    type=click.IntRange(8, _LARGEST),
    default=100,
    show_default=True,
    help="Bytes of a message's body.",
)
@click.option(
    "--seconds",
    type=FiniteRange(0.1, 3600),
    default=5.0,
    show_default=True,
    help="Seconds for each kind of send, and for the way from end to end.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 4096),
    default=64,
    show_default=True,
    help="Sends at the same time.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1024),
    default=256,
    show_default=True,
    help="Messages of a batch; fewer if they take more than 4 MiB.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each measurement.")
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
    """Measure what a cluster does for this client: sends, a backlog consumed, the way end to end.

    The topic is made if it is not there; what is sent stays in it. CPU is this client's own.
    """
    from pocketmq.cli.bench.measuring import BenchPlan
    from pocketmq.client.options import ClientOptions

    prepare_client()
    entry = Entry.taken_from(given)
    client = ClientOptions(name_servers=namesrv, credentials=entry.credentials, tls=entry.tls)
    plan = BenchPlan(topic=topic, size=size, seconds=seconds, in_flight=in_flight, batch=batch)
    try:
        asyncio.run(_show(client, plan, as_json=as_json))
    except TimeoutError:
        raise click.ClickException(f"the messages of topic {topic!r} did not come back") from None


async def _show(client: "ClientOptions", plan: "BenchPlan", *, as_json: bool) -> None:
    from pocketmq.cli.bench.measuring import measure

    if not as_json:
        print(f"{f'{plan.size} B':<26}{'messages/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}")
        sys.stdout.flush()
    async for row in measure(client, plan):
        print(_json(row) if as_json else _line(row), flush=True)


def _line(row: "Row") -> str:
    times = "".join("" if t is None else f"{t:9.2f}" for t in (row.p50_ms, row.p99_ms))
    return f"{row.what:<26}{row.rate:>12,.0f}{times:>18}{row.cpu_us:>9.1f}"


def _json(row: "Row") -> str:
    import msgspec

    fields = {"rate": round(row.rate, 1)} | msgspec.structs.asdict(row)
    return msgspec.json.encode(fields).decode()
