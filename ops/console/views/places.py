"""Where the machines of an incident stand in the inventory: a tree of site, hypervisor and machine."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

View = dict[str, Any]
Member = Mapping[str, Any]

UNKNOWN = ""  # the site or hypervisor of a machine of which none is known


def places(members: Sequence[Member]) -> list[View]:
    """The sites of these members, with their hypervisors and machines, each by name; what isn't known comes last.

    A hypervisor that is a member itself stands once, as the one that has its guests.
    """
    names = {member["machine"] for member in members}
    hosts = {_fact(member, "hypervisor") for member in members} & names
    tree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for member in members:
        name, site = member["machine"], tree[_fact(member, "site")]
        guests = site[name if name in hosts else _fact(member, "hypervisor")]
        if name not in hosts:
            guests.append(name)
    return [{"site": site, "hypervisors": _hypervisors(tree[site], names)} for site in _in_order(tree)]


def _hypervisors(guests: Mapping[str, list[str]], names: set[str]) -> list[View]:
    return [
        {"hypervisor": name, "is_member": name in names, "machines": sorted(guests[name])} for name in _in_order(guests)
    ]


def _fact(member: Member, name: str) -> str:
    return str((member["now"] or {}).get(name) or UNKNOWN)


def _in_order(names: Mapping[str, Any]) -> list[str]:
    return sorted(names, key=lambda name: (name == UNKNOWN, name))
