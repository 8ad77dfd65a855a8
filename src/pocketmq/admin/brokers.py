"""Brokers: addresses, status, settings, cleaning."""

from collections.abc import Mapping

import msgspec

from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import Absent
from pocketmq.protocol.request import AnyRequest
from pocketmq.protocol.requests import broker_admin as rows
from pocketmq.protocol.requests import groups, nameserver, stats

_PATIENT = 50.0
"""Seconds for figures over all groups of a broker, as in Java."""


class BrokerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a broker, from its own figures; None where it does not report one."""

    version: str | None
    active: bool | None
    put_tps: float | None
    get_tps: float | None
    earliest_message: float | None
    """When its oldest message was stored, in seconds since 1970."""
    disk_ratio: float | None
    put_today: int | None
    put_yesterday: int | None
    get_today: int | None
    get_yesterday: int | None
    figures: dict[str, str]
    """All its figures, by RocketMQ's names."""


class Brokers:
    """Queries and changes brokers: of a cluster, at an address, or else all."""

    def __init__(self, wire: AdminWire) -> None:
        self._wire = wire

    async def all(self, cluster: str | None = None) -> list[ServerPlace]:
        """Return the brokers of a name server, slaves too, by cluster, name and id.

        Raises `Absent` if there is no such cluster, `NameServersUnreachable`.
        """
        info = await self._wire.look_up(nameserver.GET_BROKER_CLUSTER_INFO)
        if cluster is not None and cluster not in info.cluster_addr_table:
            there = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise Absent("cluster", cluster, f"the name server has {there}")
        return [
            ServerPlace(name, broker, broker_id, address)
            for name, brokers in sorted(info.cluster_addr_table.items())
            if cluster is None or name == cluster
            for broker in sorted(brokers)
            if broker in info.broker_addr_table
            for broker_id, address in sorted(info.broker_addr_table[broker].broker_addrs.items())
        ]

    async def masters(self, cluster: str | None = None) -> list[ServerPlace]:
        """Return the brokers that accept messages. Raises what `all` does."""
        return [place for place in await self.all(cluster) if place.is_master]

    async def targets(
        self, cluster: str | None = None, address: str | None = None, *, slaves: bool = False
    ) -> list[ServerPlace]:
        """Return the broker at an address, or those of a cluster, or all; masters if not `slaves`.

        An address that the name server does not list is used as it is. Raises what `all` does.
        """
        if address is None:
            places = await self.all(cluster)
            return places if slaves else [place for place in places if place.is_master]
        known = [place for place in await self.all() if place.address == address]
        return known[:1] or [ServerPlace("", address, 0, address)]

    async def status(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[BrokerStatus]:
        """Return the status of brokers, slaves too. Raises what `all` does."""
        return await self.status_at(await self.targets(cluster, address, slaves=True))

    async def status_at(self, places: list[ServerPlace]) -> Gathered[BrokerStatus]:
        """Return the status of these brokers, whether or not a name server lists them now."""
        tables = await self._wire.read_each(places, rows.GET_BROKER_RUNTIME_INFO)
        return tables.map(lambda table: status_of(table.table))

    async def config(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[dict[str, str]]:
        """Return the settings of brokers by RocketMQ's names, of slaves too."""
        places = await self.targets(cluster, address, slaves=True)
        return await self._wire.each(places, self._config)

    async def change_config(
        self,
        settings: Mapping[str, str],
        cluster: str | None = None,
        address: str | None = None,
        *,
        slaves: bool = False,
    ) -> Gathered[None]:
        """Change settings of running brokers, of masters only unless `slaves`."""
        places = await self.targets(cluster, address, slaves=slaves)
        return await self._wire.tell_each(places, rows.UPDATE_BROKER_CONFIG, None, dict(settings))

    async def counter(
        self, statistic: str, key: str, places: list[ServerPlace]
    ) -> Gathered[stats.BrokerStats]:
        """Return one of the brokers' counters, such as TOPIC_PUT_NUMS of a topic.

        Brokers that have never counted it are missing, with their `ServerError`.
        """
        header = stats.VIEW_BROKER_STATS_DATA.header(stats_name=statistic, stats_key=key)
        return await self._wire.read_each(places, stats.VIEW_BROKER_STATS_DATA, header)

    async def consume_stats(
        self,
        address: str,
        *,
        ordered: bool = False,
        timeout: float = _PATIENT,  # noqa: ASYNC109
    ) -> stats.BrokerConsumeStats:
        """Return the progress of every group of a broker, in ordered topics or the others."""
        header = stats.GET_BROKER_CONSUME_STATS.header(is_order=ordered)
        return await self._wire.read(
            address, stats.GET_BROKER_CONSUME_STATS, header, timeout=timeout
        )

    async def producers(self, address: str) -> groups.ProducerTableBody:
        """Return all producers connected to a broker."""
        return await self._wire.read(
            address, groups.GET_ALL_PRODUCER_INFO, groups.GET_ALL_PRODUCER_INFO.header()
        )

    async def clean_queues(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Make brokers delete index files of queues whose messages are gone."""
        return await self._order(rows.CLEAN_EXPIRED_CONSUMEQUEUE, cluster, address)

    async def clean_topics(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Make brokers delete the remains of deleted topics."""
        return await self._order(rows.CLEAN_UNUSED_TOPIC, cluster, address)

    async def delete_expired_log(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Make brokers delete commit log files past their retention."""
        return await self._order(rows.DELETE_EXPIRED_COMMITLOG, cluster, address)

    async def _order(
        self, request: AnyRequest, cluster: str | None, address: str | None
    ) -> Gathered[None]:
        places = await self.targets(cluster, address, slaves=True)
        return await self._wire.tell_each(places, request)

    async def _config(self, place: ServerPlace) -> dict[str, str]:
        return dict((await self._wire.call(place.address, rows.GET_BROKER_CONFIG)).result())


def status_of(figures: dict[str, str]) -> BrokerStatus:
    """Return the most important of a broker's figures."""
    earliest = _number(figures.get("earliestMessageTimeStamp"))
    return BrokerStatus(
        version=figures.get("brokerVersionDesc"),
        active=_truth(figures.get("brokerActive")),
        put_tps=_number(figures.get("putTps")),
        get_tps=_number(figures.get("getTransferredTps") or figures.get("getTransferedTps")),
        earliest_message=earliest / 1000 if earliest is not None and earliest > 0 else None,
        disk_ratio=_number(figures.get("commitLogDiskRatio")),
        put_today=_between(figures, "msgPutTotalTodayMorning", "msgPutTotalTodayNow"),
        put_yesterday=_between(figures, "msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning"),
        get_today=_between(figures, "msgGetTotalTodayMorning", "msgGetTotalTodayNow"),
        get_yesterday=_between(figures, "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning"),
        figures=figures,
    )


def _number(text: str | None) -> float | None:
    """Return the first number of a text; rates are over 10, 60 and 600 seconds."""
    try:
        return float((text or "").split()[0])
    except (ValueError, IndexError):
        return None


def _truth(text: str | None) -> bool | None:
    return None if text is None else text.lower() == "true"


def _between(figures: dict[str, str], start: str, end: str) -> int | None:
    first, last = _number(figures.get(start)), _number(figures.get(end))
    return None if first is None or last is None else int(last - first)
