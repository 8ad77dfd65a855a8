"""`/export`: the messages of a topic as a file, newest first, as far as a search would go."""

import logging
import re
from collections.abc import AsyncIterator
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from pocketmq.dashboard.browsing.content_filter import ContentFilter
from pocketmq.dashboard.browsing.export import MEDIA_TYPES, csv_text, json_lines, last_line
from pocketmq.dashboard.browsing.newest_first import Position
from pocketmq.dashboard.browsing.reader import TopicReader
from pocketmq.dashboard.browsing.time_fields import time_ms
from pocketmq.dashboard.desk import CLUSTER, Desks
from pocketmq.dashboard.parts import visitor
from pocketmq.errors import InvalidInput, MQError, RouteNotFound

logger = logging.getLogger("pocketmq.dashboard.actions")

PATH = "/export"
MOST = 100_000
"""Messages of one file."""
_PAGE = 200


def link_to_export(
    form: str, topic: str, text: str = "", begin: str = "", end: str = "", *, cluster: str = ""
) -> str:
    """Return the address of a file; times are texts of a form."""
    query = {"format": form, "topic": topic, "text": text, "from": begin, "to": end}
    given = {name: value for name, value in query.items() if value}
    # Also if it is empty: the first cluster, whatever has been chosen in another window.
    return f"{PATH}?{urlencode({**given, CLUSTER: cluster})}"


def add_export(app: FastAPI, desks: Desks) -> None:
    """Add the address that files are loaded from."""

    async def export(request: Request) -> Response:
        desk, query = desks.named_by(request), request.query_params
        if desk is None:
            return PlainTextResponse("there is no such cluster here", 404)
        form, topic = query.get("format", ""), query.get("topic", "")
        if form not in MEDIA_TYPES:
            return PlainTextResponse(f"the format must be one of {', '.join(MEDIA_TYPES)}", 400)
        try:
            wanted = ContentFilter.of(query.get("text", ""))
            times = time_ms(query.get("from", "")), time_ms(query.get("to", "")) or None
            reader = TopicReader(desk.admin, topic)
            bounds = await reader.bounds(*times)
        except InvalidInput as error:
            return PlainTextResponse(str(error), 400)
        except RouteNotFound:
            return PlainTextResponse(f"there is no topic {topic!r}", 404)
        except MQError as error:
            return PlainTextResponse(str(error), 503)
        if bounds.missing:  # a file that lacks a broker would not show it
            return PlainTextResponse("No response from " + "; ".join(bounds.missing), 503)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", topic)[:100]
        headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
        lines = _lines(reader, bounds.position, wanted, form)
        logger.info("messages exported: user=%s topic=%r format=%s", visitor(request), topic, form)
        return StreamingResponse(lines, media_type=MEDIA_TYPES[form], headers=headers)

    app.add_api_route(PATH, export, response_class=Response)


async def _lines(
    reader: TopicReader, position: Position, wanted: ContentFilter, form: str
) -> AsyncIterator[bytes]:
    """Yield a file page by page; a broker that stops responding ends it, and the download fails."""
    written = 0
    if form == "csv":
        yield csv_text([], header=True).encode()
    while position and written < MOST:
        page = await reader.page(position, wanted, min(_PAGE, MOST - written))
        if page.missing:
            raise ConnectionError(f"no response from {page.missing[0]}")
        position, written = page.older, written + len(page.messages)
        as_csv = form == "csv"
        found = page.messages
        yield csv_text(found, header=False).encode() if as_csv else json_lines(found)
    if position:
        yield last_line(form, written)
