"""Protection of forms: only a page of the console itself can post one, by a token that its session knows."""

import hmac
import secrets
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

TOKEN = "csrf"  # in the session, and the name of the field of each form
_OWN = ("same-origin", "none")  # Sec-Fetch-Site of a form of ours, or of what a person types


class ForgedError(Exception):
    """A form that no page of the present session has made."""


def token(connection: HTTPConnection) -> str:
    """The token for the forms of a session, made at its first page."""
    session: dict[str, Any] = connection.session
    if TOKEN not in session:
        session[TOKEN] = secrets.token_urlsafe(24)
    return str(session[TOKEN])


async def checked_form(request: Request) -> dict[str, list[str]]:
    """The texts of a form by the names of its fields. Raises ForgedError unless it has the session's token."""
    async with request.form(max_files=0) as form:
        given, known = str(form.get(TOKEN, "")), str(request.session.get(TOKEN, ""))
        if not known or not hmac.compare_digest(given.encode(), known.encode()):
            raise ForgedError
        return {name: [str(one) for one in form.getlist(name)] for name in form}


def is_from_elsewhere(request: HTTPConnection) -> bool:
    """Whether the browser says that another site's page sends this."""
    if (site := request.headers.get("Sec-Fetch-Site")) is not None:
        return site not in _OWN
    origin = request.headers.get("Origin")
    return origin is not None and urlsplit(origin).netloc != request.headers.get("Host")
