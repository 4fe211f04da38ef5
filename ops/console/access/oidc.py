"""Authentication by OpenID Connect: the provider's login, then a signed session (authorization code with PKCE)."""

import structlog
from authlib.integrations.base_client import OAuthError
from authlib.integrations.starlette_client import OAuth
from httpx2 import HTTPError
from joserfc.errors import JoseError
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ops.console.access.addresses import own_path
from ops.console.access.csrf import ForgedError, checked_form
from ops.console.access.people import LONGEST_NAME, Person, Roles
from ops.console.settings import ConsoleSettings

WHO, GROUPS, BACK = "who", "groups", "back"  # in the session

_log = structlog.get_logger(__name__)


class OidcScheme:
    """People log in at the provider; what it says of them is kept in their session, signed, until that ends."""

    can_leave = True
    can_be_named = False

    def __init__(self, settings: ConsoleSettings, roles: Roles) -> None:
        self._settings, self._roles = settings, roles
        issuer, secret = (settings.oidc_issuer or "").rstrip("/"), settings.oidc_client_secret
        self._provider = OAuth().register(
            "provider",
            client_id=settings.oidc_client_id,
            client_secret=secret.get_secret_value() if secret else None,
            server_metadata_url=f"{issuer}/.well-known/openid-configuration",
            client_kwargs={"scope": settings.oidc_scopes, "code_challenge_method": "S256"},
        )
        self.routes = [
            Route("/login", self._login),
            Route("/login/done", self._done),
            Route("/logout", self._leave, methods=["POST"]),
        ]

    def person(self, connection: HTTPConnection) -> Person | None:
        """Who has logged in."""
        name = connection.session.get(WHO)
        return self._roles.person(name, connection.session.get(GROUPS, ())) if name else None

    def refusal(self, request: Request) -> Response:
        """The login, for a page; who has logged in and has no role is told so."""
        if name := request.session.get(WHO):
            return PlainTextResponse(f"{name} may not see the console.\n", 403)
        if request.method != "GET" or request.url.path.startswith(("/api/", "/stream")):
            return JSONResponse({"error": "log in first"}, 401)
        request.session[BACK] = own_path(f"{request.url.path}?{request.url.query}")
        return RedirectResponse("/login")

    async def _login(self, request: Request) -> Response:
        try:
            answer = await self._provider.authorize_redirect(request, f"{self._settings.public_url}/login/done")
        except HTTPError as error:
            return self._failed(f"the provider does not answer: {error}", 503)
        return answer if isinstance(answer, Response) else self._failed("no redirect", 503)

    async def _done(self, request: Request) -> Response:
        try:
            token = await self._provider.authorize_access_token(request)
        except HTTPError as error:
            return self._failed(f"the provider does not answer: {error}", 503)
        except (OAuthError, JoseError, ValueError) as error:
            return self._failed(str(error), 403)
        claims = token.get("userinfo") or {}
        name, groups = claims.get(self._settings.oidc_name_claim) or claims.get("sub"), self._groups(claims)
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            return self._failed(f"the provider's {self._settings.oidc_name_claim} is no name", 403)
        back = own_path(request.session.get(BACK))
        request.session.clear()
        request.session.update({WHO: name, GROUPS: groups})
        _log.info("logged in", by=name)
        return RedirectResponse(back)

    def _groups(self, claims: dict[str, object]) -> list[str]:
        """Of all groups those that roles name: a session is a cookie, which has room for few."""
        claimed = claims.get(self._settings.oidc_groups_claim)
        listed = claimed if isinstance(claimed, list) else [claimed]
        return [one for one in listed if isinstance(one, str) and self._roles.names_group(one)]

    async def _leave(self, request: Request) -> Response:
        try:
            await checked_form(request)
        except ForgedError:
            return self._failed("a form of another session", 403)
        request.session.clear()
        return PlainTextResponse("Logged out.\n")

    def _failed(self, reason: str, status: int) -> Response:
        _log.warning("login failed", error=reason)
        return PlainTextResponse(f"Login failed: {reason}\n", status)
