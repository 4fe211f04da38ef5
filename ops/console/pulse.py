"""Tells open pages that what they show has changed: one look at the servers for all of them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress

from prometheus_client import Gauge
from starlette.concurrency import run_in_threadpool

STREAMS = Gauge("kappa_console_streams", "Open pages that are told of changes")
PERIOD_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0  # a proxy closes what is silent for a minute

Signs = Mapping[str, object]  # by feed: what is another value once its content has changed


class Pulse:
    """Looks at the signs of all feeds twice a second, as long as a page is open."""

    def __init__(self, look: Callable[[], Signs], changed: Callable[[Collection[str]], None]) -> None:
        """`changed` is told of the feeds that have changed, or may have while nobody looked, before the pages are."""
        self._look, self._tell = look, changed
        self._signs: Signs = {}
        self._revisions: dict[str, int] = defaultdict(int)
        self._beat, self._beginning = asyncio.Condition(), asyncio.Lock()
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None

    async def changes(self, feeds: Collection[str]) -> AsyncIterator[bool]:
        """True each time one of the feeds has changed; False first, and now and then while none does.

        What is read after the first False, and isn't followed by a True, is up to date.
        """
        async with self._listening():
            seen = self._seen(feeds)
            self._tell(feeds)
            yield False
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_ALIVE_SECONDS), self._beat:
                        await self._beat.wait_for(lambda before=seen: self._seen(feeds) != before)  # type: ignore[misc]
                now = self._seen(feeds)
                yield now != seen
                seen = now

    def _seen(self, feeds: Collection[str]) -> list[int]:
        return [self._revisions[feed] for feed in feeds]

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        self._listeners += 1
        STREAMS.set(self._listeners)
        try:
            async with self._beginning:
                if self._task is None or self._task.done():
                    self._signs = await run_in_threadpool(self._look)
                    self._task = asyncio.create_task(self._run())
            yield
        finally:
            self._listeners -= 1
            STREAMS.set(self._listeners)

    async def _run(self) -> None:
        while self._listeners:
            await asyncio.sleep(PERIOD_SECONDS)
            signs = await run_in_threadpool(self._look)
            changed = [feed for feed, sign in signs.items() if self._signs.get(feed, sign) != sign]
            self._signs = signs
            if changed:
                self._tell(changed)
                for feed in changed:
                    self._revisions[feed] += 1
                async with self._beat:
                    self._beat.notify_all()
