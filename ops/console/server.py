"""The console as an ASGI application: pages, their JSON, forms, health and metrics."""

import secrets
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from jobs.runtime.access import CHALLENGE, UNAUTHORIZED, Token
from jobs.runtime.settings import Settings
from ops.console import answers
from ops.console.access.addresses import HOME
from ops.console.access.guard import OPEN, Guard
from ops.console.access.schemes import scheme_of
from ops.console.actions.table import ACTIONS
from ops.console.feeds import signs, sources_of
from ops.console.openapi import openapi
from ops.console.pulse import Pulse
from ops.console.reads import SourceDown
from ops.console.settings import ConsoleSettings
from ops.console.sources import Sources
from ops.console.stream import Streams
from ops.console.views.table import PAGES
from ops.console.writes import Writes

STATIC = Path(__file__).parent / "static"
SESSION = "kappa"  # its cookie
DESCRIPTION = openapi(PAGES)


def application(sources: Sources, own: ConsoleSettings, writes: Writes, user: str | None = None) -> Starlette:
    """The application; `user` is who runs it, and acts where there is no authentication and nobody says otherwise."""
    scheme = scheme_of(own, user)
    pulse = Pulse(lambda: signs(sources), lambda feeds: sources.forget(sources_of(feeds)))
    acts = [(action, answers.act(action, sources, writes)) for action in ACTIONS]
    return Starlette(
        routes=[
            Route("/", lambda _: RedirectResponse(HOME)),
            *[Route(f"/{page.path}", answers.html(page, sources), name=page.path) for page in PAGES],
            *[Route(f"/api/v1/{page.path}", answers.json(page, sources)) for page in PAGES],
            *[Route(f"/{page.path}.csv", answers.csv(page, sources)) for page in PAGES if page.is_costly],
            *[Route(f"/act/{action.name}", act, methods=["POST"]) for action, act in acts],
            *([Route(answers.WHO_PAGE, answers.who, methods=["GET", "POST"])] if scheme.can_be_named else []),
            *scheme.routes,
            Route("/stream", Streams(pulse).answer),
            Route("/api/v1/openapi.json", lambda _: JSONResponse(DESCRIPTION)),
            Route("/metrics", _metrics(sources.settings)),
            Route("/healthz", lambda _: PlainTextResponse("ok\n")),
            Route("/readyz", _ready(sources)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(
                SessionMiddleware,
                secret_key=own.session_secret.get_secret_value() if own.session_secret else secrets.token_hex(32),
                session_cookie=SESSION,
                max_age=int(own.session_hours * 3600),
                https_only=(own.public_url or "").startswith("https:"),
            ),
            Middleware(Guard, scheme=scheme, hosts=own.hosts, links=own.links),
        ],
        exception_handlers={404: _not_found},
    )


def _not_found(request: Request, _: Exception) -> Response:
    if request.url.path.startswith(OPEN):
        return PlainTextResponse("not found\n", 404)
    return answers.message(request, 404, "Not found", f"There is no page {request.url.path}.")


def _metrics(settings: Settings) -> Callable[[Request], Response]:
    """To whom the jobs would answer, too."""
    token = Token(settings.metrics_token_file) if settings.metrics_token_file else None

    def answer(request: Request) -> Response:
        if token and not token.is_given_by(request.headers.get("Authorization")):
            return PlainTextResponse(UNAUTHORIZED, HTTPStatus.UNAUTHORIZED, CHALLENGE)
        return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)

    return answer


def _ready(sources: Sources) -> Callable[[Request], Response]:
    def answer(_: Request) -> Response:
        try:
            sources.check()
        except SourceDown as error:
            return PlainTextResponse(f"{error}\n", 503)
        return PlainTextResponse("ok\n")

    return answer
