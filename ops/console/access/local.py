"""Without authentication: whoever reaches the console uses this machine, and may do everything, under a name."""

from collections.abc import Sequence

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ops.console.access.people import Person

NAME = "name"  # in the session


class LocalScheme:
    """Everybody is an operator; one may say another name than that of the user who runs the console."""

    routes: Sequence[Route] = ()
    can_leave = False
    can_be_named = True

    def __init__(self, user: str | None) -> None:
        """`user` is who acts unless somebody says another name; None where that can't be known."""
        self._user = user

    def person(self, connection: HTTPConnection) -> Person:
        """An operator, with the name that was said."""
        return Person(connection.session.get(NAME) or self._user, "operator")

    def refusal(self, request: Request) -> Response:
        """Nobody is refused."""
        return PlainTextResponse("no access\n", 403)
