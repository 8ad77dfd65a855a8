"""`clusterList`: clusters and how their brokers are."""

from pocketmq.admin.admin import Admin
from pocketmq.admin.brokers import BrokerStatus
from pocketmq.admin.gathered import ServerPlace
from pocketmq.cli.admin.flags import CLUSTER, INTERVAL, flag
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, row, told
from pocketmq.cli.admin.words import java_word

_BASE = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s"
_BASE_ROW = "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s"
_MORE = "%-16s  %-32s %14s %14s %14s %14s"
_UNKNOWN = "?"


@admin_command(
    "clusterList", CLUSTER, flag("-m", "--moreStats", "more", help="Show totals."), INTERVAL
)
async def cluster_list(admin: Admin, *, cluster: str | None, more: bool) -> Shown:
    """Show clusters and how their brokers are; `?` stands for what is not known."""
    places = await admin.brokers.all(cluster)
    found = await admin.brokers.status(cluster)
    status: dict[ServerPlace, BrokerStatus] = {each.place: each.value for each in found}
    if more:
        lines = [
            row(
                _MORE,
                "#Cluster Name",
                "#Broker Name",
                "#InTotalYest",
                "#OutTotalYest",
                "#InTotalToday",
                "#OutTotalToday",
            )
        ]
        lines += [_more(place, status.get(place)) for place in places]
    else:
        lines = [
            row(
                _BASE,
                "#Cluster Name",
                "#Broker Name",
                "#BID",
                "#Addr",
                "#Version",
                "#InTPS(LOAD)",
                "#OutTPS(LOAD)",
                "#Timer(Progress)",
                "#PCWait(ms)",
                "#Hour",
                "#SPACE",
                "#ACTIVATED",
            )
        ]
        now = admin.now_ms() / 1000
        lines += [_base(place, status.get(place), now) for place in places]
    brokers = [{"place": place, "status": status.get(place)} for place in places]
    return Shown(lines, {"brokers": brokers}, told(found.missing))


def _more(place: ServerPlace, status: BrokerStatus | None) -> str:
    numbers: list[object] = [_UNKNOWN] * 4
    if status is not None:
        numbers = [
            _UNKNOWN if each is None else each
            for each in (
                status.put_yesterday,
                status.get_yesterday,
                status.put_today,
                status.get_today,
            )
        ]
    return row(_MORE, place.cluster, place.broker, *numbers)


def _base(place: ServerPlace, status: BrokerStatus | None, now: float) -> str:
    where = (place.cluster, place.broker, place.broker_id, place.address)
    if status is None:
        return row(_BASE_ROW, *where, *([_UNKNOWN] * 8))
    told = status.figures.get
    sends = f"{told('sendThreadPoolQueueSize')},{told('sendThreadPoolQueueHeadWaitTimeMills')}ms"
    pulls = f"{told('pullThreadPoolQueueSize')},{told('pullThreadPoolQueueHeadWaitTimeMills')}ms"
    acks = (
        f"{told('ackThreadPoolQueueSize', 'N')},"
        f"{told('ackThreadPoolQueueHeadWaitTimeMills', 'N')}ms"
    )
    earliest = status.earliest_message
    return row(
        _BASE_ROW,
        *where,
        status.version or _UNKNOWN,
        f"{_rate(status.put_tps)}({sends})",
        f"{_rate(status.get_tps)}({pulls}|{acks})",
        _timer(status.figures),
        told("pageCacheLockTimeMills", _UNKNOWN),
        _UNKNOWN if earliest is None else f"{(now - earliest) / 3600:2.2f}",
        _UNKNOWN if status.disk_ratio is None else f"{status.disk_ratio:.4f}",
        _UNKNOWN if status.active is None else java_word(status.active),
    )


def _rate(rate: float | None) -> str:
    return f"{_UNKNOWN:>9}" if rate is None else f"{rate:9.2f}"


def _timer(figures: dict[str, str]) -> str:
    """Write how the timer wheel is; Java shows zeros where a broker has none, or does not tell."""
    names = ("timerReadBehind", "timerOffsetBehind", "timerCongestNum")
    rates = ("timerEnqueueTps", "timerDequeueTps")
    try:
        behind, offset, congested = (int(figures[name]) for name in names)
        into, out = (float(figures[name]) for name in rates)
    except (KeyError, ValueError):
        return _UNKNOWN
    return f"{behind}-{offset}({congested / 10000:.1f}w, {into:.1f}, {out:.1f})"


COMMANDS = {"clusterList": cluster_list}
