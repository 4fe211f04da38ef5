"""The console as an ASGI application: pages, their JSON, health and metrics; it only reads."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from infra.errors import UserError
from ops.console.errors import NotThere
from ops.console.openapi import openapi
from ops.console.pages import environment
from ops.console.reads import SourceDown
from ops.console.sources import Sources
from ops.console.views import PAGES, Page

REQUEST_SECONDS = Histogram("kappa_console_request_seconds", "Duration of a request", ("page", "status"))
STATIC = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NAVIGATION = tuple(page for page in PAGES if "{" not in page.path)
DESCRIPTION = openapi(PAGES)
_TEMPLATES = environment()


def application(sources: Sources, hosts: tuple[str, ...]) -> Starlette:
    """The application; it answers only requests for these hosts: another site's name may lead to this machine."""
    pages = [Route(f"/{page.path}", _html(page, sources), name=page.path) for page in PAGES]
    data = [Route(f"/api/v1/{page.path}", _json(page, sources)) for page in PAGES]
    return Starlette(
        routes=[
            Route("/", lambda _: RedirectResponse("/chain")),
            *pages,
            *data,
            Route("/api/v1/openapi.json", lambda _: JSONResponse(DESCRIPTION)),
            Route("/metrics", _metrics),
            Route("/healthz", lambda _: PlainTextResponse("ok\n")),
            Route("/readyz", _ready(sources)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=_guarded),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
        ],
        exception_handlers={404: lambda request, _: _page(404, "Not found", f"There is no page {request.url.path}.")},
    )


def _html(page: Page, sources: Sources) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        arguments = _arguments(request)
        try:
            view = page.read(sources, arguments)
            more = page.more(view, sources, arguments)
        except SourceDown as error:
            return _page(503, page.title, f"{error.source}: {error.reason}.", _section(page))
        except NotThere as error:
            return _page(404, page.title, str(error), _section(page))
        except UserError as error:
            return _page(400, page.title, str(error), _section(page))
        shown = {
            "view": view,
            "title": page.title,
            "here": _section(page),
            "navigation": NAVIGATION,
            "arguments": arguments,
        }
        return HTMLResponse(_TEMPLATES.get_template(f"{page.name}.html").render(shown | more))

    return _timed(page, answer)


def _json(page: Page, sources: Sources) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            return JSONResponse(page.read(sources, _arguments(request)))
        except SourceDown as error:
            return JSONResponse({"error": error.reason, "source": error.source}, 503)
        except NotThere as error:
            return JSONResponse({"error": str(error)}, 404)
        except UserError as error:
            return JSONResponse({"error": str(error)}, 400)

    return _timed(page, answer)


def _timed(page: Page, answer: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def timed(request: Request) -> Response:
        begun = perf_counter()
        response = answer(request)
        REQUEST_SECONDS.labels(page.name, response.status_code).observe(perf_counter() - begun)
        return response

    return timed


def _arguments(request: Request) -> dict[str, str]:
    return {**request.query_params, **request.path_params}


def _section(page: Page) -> str:
    """The entry of the navigation to which a page belongs."""
    return page.path.partition("/")[0]


def _page(status: int, title: str, message: str, here: str = "") -> HTMLResponse:
    shown: dict[str, Any] = {"title": title, "message": message, "here": here, "navigation": NAVIGATION}
    return HTMLResponse(_TEMPLATES.get_template("message.html").render(shown), status)


def _metrics(_: Request) -> Response:
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)


def _ready(sources: Sources) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        try:
            sources.check()
        except SourceDown as error:
            return PlainTextResponse(f"{error}\n", 503)
        return PlainTextResponse("ok\n")

    return answer


async def _guarded(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call(request)
    response.headers.update(HEADERS)
    return response
