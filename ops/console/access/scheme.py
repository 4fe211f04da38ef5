"""What a way to know people offers to the server."""

from collections.abc import Sequence
from typing import Protocol

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route

from ops.console.access.people import Person


class Scheme(Protocol):
    """A way to know who asks."""

    @property
    def routes(self) -> Sequence[Route]:
        """Requests that need no person: a login's."""

    can_leave: bool  # whether one can log out
    can_be_named: bool  # whether one may say one's name oneself

    def person(self, connection: HTTPConnection) -> Person | None:
        """Who asks; None if it is nobody who may see the console."""

    def refusal(self, request: Request) -> Response:
        """What nobody gets instead of a page."""
