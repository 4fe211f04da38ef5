"""Authentication by a proxy in front of the console, such as oauth2-proxy: headers say who asks."""

from collections.abc import Collection, Sequence
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ops.console.access.people import LONGEST_NAME, Person, Roles


class ProxyScheme:
    """Believes the headers of requests that come from the proxy's own address, and no others."""

    routes: Sequence[Route] = ()
    can_leave = False
    can_be_named = False

    def __init__(self, networks: Collection[str], user_header: str, groups_header: str, roles: Roles) -> None:
        self._networks = [ip_network(network) for network in networks]
        self._user_header, self._groups_header, self._roles = user_header, groups_header, roles

    def person(self, connection: HTTPConnection) -> Person | None:
        """Whom the proxy names; None of a request that didn't come through it."""
        name = connection.headers.get(self._user_header, "")
        if not self._is_proxy(connection) or not 0 < len(name) <= LONGEST_NAME:
            return None
        groups = connection.headers.get(self._groups_header, "").split(",")
        return self._roles.person(name, [group.strip() for group in groups if group.strip()])

    def _is_proxy(self, connection: HTTPConnection) -> bool:
        try:
            address = ip_address(connection.client.host if connection.client else "")
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)

    def refusal(self, request: Request) -> Response:
        """Says why: who comes past the proxy is told so."""
        if not self._is_proxy(request):
            return PlainTextResponse("The console is reached through its proxy only.\n", 403)
        name = request.headers.get(self._user_header) or "Nobody"
        return PlainTextResponse(f"{name} may not see the console.\n", 403)
