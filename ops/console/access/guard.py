"""What stands before every answer: for which host it is, who asks, and the headers that keep foreign text harmless."""

from collections.abc import Collection, Sequence
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ops.console.access.csrf import is_from_elsewhere
from ops.console.access.scheme import Scheme

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PROBES = ("/healthz", "/readyz", "/metrics")  # asked by machines, by address
OPEN = ("/static/",)


class Guard:
    """Refuses requests for other hosts, of strangers, and other sites' forms; the request's state gets the person."""

    def __init__(
        self, app: ASGIApp, scheme: Scheme, hosts: Collection[str], links: Sequence[tuple[str, str]] = ()
    ) -> None:
        """`hosts`: the names by which the console may be called; empty: any, as its own isn't known.

        `links` are names and addresses of other tools, for the pages.
        """
        self._app, self._scheme, self._hosts, self._links = app, scheme, hosts, links
        self._open = {route.path for route in scheme.routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer: Any = self._app
        if scope["path"] not in PROBES:
            answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> ASGIApp | None:
        if self._hosts and request.url.hostname not in self._hosts:
            # Another site's name may lead to this machine.
            return PlainTextResponse("Unknown host\n", 400)
        if request.method not in ("GET", "HEAD") and is_from_elsewhere(request):
            return PlainTextResponse("A form of another site\n", 403)
        if request.url.path.startswith(OPEN) or request.url.path in self._open:
            return None
        request.state.links = self._links
        request.state.scheme, person = self._scheme, self._scheme.person(request)
        if person is None:
            return self._scheme.refusal(request)
        request.state.person = person
        return None
