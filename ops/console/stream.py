"""Server-sent events: `changed`, whenever what a page shows has changed."""

import asyncio
from collections.abc import AsyncIterator, Collection

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ops.console.feeds import FEEDS
from ops.console.pulse import Pulse

LEAST_SECONDS = 1.0  # between two events of a page, so that a busy fleet doesn't have it drawn without end
CHANGED, SILENT = b"event: changed\ndata:\n\n", b": nothing new\n\n"


class Streams:
    """Answers requests of pages that want to be told."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    async def answer(self, request: Request) -> Response:
        """A stream of events for the feeds that are asked for."""
        feeds = [feed for feed in request.query_params.get("feeds", "").split(",") if feed]
        if not feeds or (unknown := {*feeds} - {*FEEDS}):
            known = ", ".join(FEEDS)
            return PlainTextResponse(f"feeds={','.join(unknown) if feeds else ''}: there are {known}\n", 400)
        return StreamingResponse(self._events(feeds), media_type="text/event-stream")

    async def _events(self, feeds: Collection[str]) -> AsyncIterator[bytes]:
        async for has_changed in self._pulse.changes(feeds):
            yield CHANGED if has_changed else SILENT
            if has_changed:
                await asyncio.sleep(LEAST_SECONDS)
