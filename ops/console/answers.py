"""Answers to requests: the page of a view, its JSON, and what follows a form."""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from io import StringIO
from time import perf_counter
from typing import Any

import structlog
from prometheus_client import Counter, Histogram
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response

from infra.errors import UserError
from ops.console.access.addresses import own_path
from ops.console.access.csrf import ForgedError, checked_form, is_from_elsewhere, token
from ops.console.access.local import NAME
from ops.console.access.people import LONGEST_NAME, Person
from ops.console.actions.forms import optional_text
from ops.console.actions.table import Action
from ops.console.errors import NotThere
from ops.console.operations import ElsewhereError
from ops.console.pages import environment
from ops.console.reads import SourceDown
from ops.console.sources import Sources
from ops.console.views.ask import DRAFT, SQL
from ops.console.views.table import NAVIGATION, Page
from ops.console.writes import Writes
from ops.sql.csv_text import write_csv

REQUEST_SECONDS = Histogram("kappa_console_request_seconds", "Duration of a request", ("page", "status"))
ACTED = Counter("kappa_console_actions", "Actions of people, by name and whether they were done", ("action", "outcome"))
NOTICE = "notice"  # in the session: what the next page says
AS_FILE = {"Content-Disposition": 'attachment; filename="kappa.csv"'}
WHO_PAGE = "/who"
TOO_OLD = "The form is too old: go back, and load the page again."

Endpoint = Callable[[Request], Response]
AsyncEndpoint = Callable[[Request], Awaitable[Response]]

_log = structlog.get_logger(__name__)
_TEMPLATES = environment()


def html(page: Page, sources: Sources) -> Endpoint:
    """Answers with the page of a view."""

    def answer(request: Request) -> Response:
        arguments, here, status = _arguments(request, page), _section(page), 200
        try:
            view = page.read(sources, arguments)
        except SourceDown as error:
            return message(request, 503, page.title, f"{error.source}: {error.reason}.", here, feeds=page.feeds)
        except NotThere as error:
            return message(request, 404, page.title, str(error), here)
        except UserError as error:
            if page.refused is None:
                return message(request, 400, page.title, str(error), here)
            view, status = page.refused(arguments, str(error)), 400
        shown = {"feeds": page.feeds, "view": view, "arguments": arguments, **page.more(view, sources, arguments)}
        return _rendered(request, page.name, page.title, here=here, status=status, **shown)

    return _timed(page, answer)


def json(page: Page, sources: Sources) -> Endpoint:
    """Answers with a view as JSON."""

    def answer(request: Request) -> Response:
        try:
            return JSONResponse(page.read(sources, _arguments(request, page)))
        except SourceDown as error:
            return JSONResponse({"error": error.reason, "source": error.source}, 503)
        except NotThere as error:
            return JSONResponse({"error": str(error)}, 404)
        except UserError as error:
            return JSONResponse({"error": str(error)}, 400)

    return _timed(page, answer)


def csv(page: Page, sources: Sources) -> Endpoint:
    """Answers with the result of a query as a file."""

    def answer(request: Request) -> Response:
        try:
            view = page.read(sources, _arguments(request, page))
        except UserError as error:
            return PlainTextResponse(f"{error}\n", 400)
        text = StringIO()
        write_csv(view, text)
        return Response(text.getvalue(), media_type="text/csv", headers=AS_FILE)

    return _timed(page, answer)


def act(action: Action, sources: Sources, writes: Writes) -> AsyncEndpoint:
    """Does what a posted form says, and leads back to a page that says so; only for an operator, who has a name."""

    async def answer(request: Request) -> Response:
        try:
            form = await checked_form(request)
        except ForgedError:
            return message(request, 403, "Not done", TOO_OLD)
        back, person = own_path(optional_text(form, "back")), _person(request)
        if not person.may_act:
            return message(request, 403, "Not done", f"{person.name} is a viewer; operators may do this.")
        if not person.name:
            return RedirectResponse(f"{WHO_PAGE}?back={back}", 303)
        try:
            done = await run_in_threadpool(action.do, writes, form, person.name)
        except ElsewhereError as error:
            return _rendered(request, "elsewhere", "To be typed", command=str(error), back=back)
        except UserError as error:
            ACTED.labels(action.name, "refused").inc()
            return message(request, 400, "Not done", str(error))
        ACTED.labels(action.name, "done").inc()
        _log.info("action", action=action.name, by=person.name, done=done)
        sources.forget()
        request.session[NOTICE] = done
        return RedirectResponse(action.ends or back, 303)

    return answer


async def who(request: Request) -> Response:
    """The page on which one says one's name, where the scheme leaves that to people."""
    if request.method == "GET":
        return _rendered(request, "who", "Who are you?", back=own_path(request.query_params.get("back")))
    try:
        form = await checked_form(request)
    except ForgedError:
        return message(request, 403, "Not done", TOO_OLD)
    request.session[NAME] = (optional_text(form, "name") or "")[:LONGEST_NAME]
    return RedirectResponse(own_path(optional_text(form, "back")), 303)


def message(
    request: Request, status: int, title: str, text: str, here: str = "", *, feeds: Sequence[str] = ()
) -> Response:
    """A page that says one thing; with the `feeds` of what it stands for, it becomes that once it can be shown."""
    return _rendered(request, "message", title, here=here, status=status, message=text, feeds=feeds)


def _rendered(
    request: Request, template: str, title: str, *, here: str = "", status: int = 200, **shown: Any
) -> Response:
    common = {
        "title": title,
        "here": here,
        "navigation": NAVIGATION,
        "links": request.state.links,
        "person": _person(request),
        "scheme": request.state.scheme,
        "csrf": token(request),
        "feeds": (),
        "is_down": status == HTTPStatus.SERVICE_UNAVAILABLE,
        "address": own_path(f"{request.url.path}?{request.url.query}"),
        "notice": request.session.pop(NOTICE, None),
    }
    return HTMLResponse(_TEMPLATES.get_template(f"{template}.html").render(common | shown), status)


def _person(request: Request) -> Person:
    person: Person = request.state.person
    return person


def _timed(page: Page, answer: Endpoint) -> Endpoint:
    def timed(request: Request) -> Response:
        begun = perf_counter()
        response = answer(request)
        REQUEST_SECONDS.labels(page.name, response.status_code).observe(perf_counter() - begun)
        return response

    return timed


def _arguments(request: Request, page: Page) -> dict[str, str]:
    arguments = {**request.query_params, **request.path_params}
    if page.is_costly and SQL in arguments and is_from_elsewhere(request):
        arguments[DRAFT] = arguments.pop(SQL)
    return arguments


def _section(page: Page) -> str:
    """The entry of the navigation to which a page belongs."""
    return page.path.partition("/")[0]
