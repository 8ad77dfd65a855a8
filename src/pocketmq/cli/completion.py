"""What a shell completes: names of topics and groups, asked for at the cluster.

A shell waits while it completes, so a cluster that is slow or away is not waited for. Whatever goes
wrong means that nothing is completed: an error would be printed into the user's line.
"""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pocketmq.admin.admin import Admin

_PATIENCE = 1.0
"""Seconds for which a shell may wait."""
_OF_GROUPS = ("%RETRY%", "%DLQ%")


def topic_names(
    context: click.Context, _option: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Return the topics whose names begin with `incomplete`."""

    async def names(admin: "Admin") -> list[str]:
        found = await admin.topics.names()
        return [name for name in found if incomplete or not name.startswith(_OF_GROUPS)]

    return _completed(context, names, incomplete)


def group_names(
    context: click.Context, _option: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Return the groups whose names begin with `incomplete`."""

    async def names(admin: "Admin") -> list[str]:
        tables = await admin.groups.configs()
        return sorted({name for each in tables for name in each.value})

    return _completed(context, names, incomplete)


def _completed(context: click.Context, ask: Any, incomplete: str) -> "list[CompletionItem]":
    import asyncio

    from click.shell_completion import CompletionItem

    try:
        names = asyncio.run(_asked(context.params, ask))
    except Exception:  # noqa: BLE001 - see above
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


async def _asked(given: dict[str, Any], ask: Any) -> list[str]:
    import asyncio

    from pocketmq.admin.admin import Admin
    from pocketmq.cli.connection_options import Entry

    fields: dict[str, Any] = {name: given.get(name) or "" for name in Entry.__struct_fields__}
    entry = Entry(**fields)
    async with asyncio.timeout(_PATIENCE):
        async with Admin(
            given.get("namesrv") or "",
            credentials=entry.credentials,
            tls=entry.tls,
            timeout=_PATIENCE,
            request_timeout=_PATIENCE,
        ) as admin:
            names: list[str] = await ask(admin)
            return names
