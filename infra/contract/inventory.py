"""The facts of a machine in the inventory, from which schemas, documents, enrichment, CLI, simulator derive theirs."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel


class Facts(BaseModel):
    """The facts of one machine; None where a fact isn't known."""

    type: Literal["physical", "virtual"] | None = None
    site: str | None = None
    hypervisor: str | None = None  # of a virtual machine: the physical one that it runs on
    tenant: str | None = None
    role: str | None = None
    workload: str | None = None  # of a machine that others replace: whose member it is, `deployment/shop/cart`


FACTS = tuple(Facts.model_fields)  # the names of the facts, in the order that they have in records
DEPENDS_ON = "depends_on"  # beside them: what a machine needs, as names of machines, workloads or roles of its tenant
MOST_DEPENDENCIES = 100
DEPENDENCIES_CHARACTERS = 4_000  # of all names of a machine together: each of its records has them
WORKLOAD = "workload"  # the fact by which machines that come and go are judged together
VALID_TO = "valid_to_unix_nano"  # beside the facts in a record: when the machine is retired
PLACES = ("hypervisor", "site", "tenant", "role")  # the facts by which machines are grouped


def places(machine: str, inventory: Mapping[str, Any] | None) -> dict[str, str]:
    """Which hypervisor, site, tenant and role a machine belongs to; a physical one is its own hypervisor."""
    known = {kind: name for kind in PLACES if (name := (inventory or {}).get(kind)) is not None}
    return {"hypervisor": machine, **known}
