"""Who depends on whom among machines: names that they go by, and names that they need.

A name may be a machine's own, that of its workload (`deployment/shop/cart`, or `cart` alone), or a role, which means
the machines of that role of the same tenant. Names of hosts are the same in upper and lower case (RFC 4343).
"""

from collections.abc import Iterable, Mapping

Name = tuple[str, ...]
_SEPARATOR = "/"


def goes_by(machine: str, workload: str | None, places: Mapping[str, str]) -> frozenset[Name]:
    """The names by which others may need this machine."""
    full = {one for one in (machine, workload) if one}
    names = {_named(one) for one in full | {one.rpartition(_SEPARATOR)[2] for one in full}}
    if (role := places.get("role")) is not None:
        names.add(_as_role(role, places))
    return frozenset(names)


def needs(depends_on: Iterable[str], places: Mapping[str, str]) -> frozenset[Name]:
    """The names that a machine in these places needs. A host's name in a domain is its first label's, too."""
    wanted = set(depends_on)
    labels = {one.partition(".")[0] for one in wanted if not one.replace(".", "").isdigit()}
    roles = {_as_role(one, places) for one in wanted}
    return frozenset({_named(one) for one in wanted | labels} | roles)


def _named(name: str) -> Name:
    return ("name", name.casefold())


def _as_role(role: str, places: Mapping[str, str]) -> Name:
    return ("role", places.get("tenant", ""), role.casefold())
