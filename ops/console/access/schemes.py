"""Which way to know people the settings choose."""

from ops.console.access.people import Roles
from ops.console.access.scheme import Scheme
from ops.console.settings import ConsoleSettings


def scheme_of(settings: ConsoleSettings, user: str | None) -> Scheme:
    """The settings' scheme; `user` is the name of who runs the console, if that is the person who uses it."""
    roles = Roles(settings.viewers, settings.operators)
    if settings.auth == "proxy":
        from ops.console.access.proxy import ProxyScheme

        return ProxyScheme(settings.proxy_networks, settings.proxy_user_header, settings.proxy_groups_header, roles)
    if settings.auth == "oidc":
        from ops.console.access.oidc import OidcScheme  # its libraries take memory

        return OidcScheme(settings, roles)
    from ops.console.access.local import LocalScheme

    return LocalScheme(user if settings.is_local else None)
