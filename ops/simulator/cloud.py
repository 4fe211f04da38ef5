"""The machines of a simulated telco cloud: sites, hypervisors and the virtual machines on them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from infra.contract.inventory import FACTS
from infra.errors import UserError

MACHINES_PER_HYPERVISOR = 7  # itself and six guests
NETWORK_FUNCTIONS = ("AMF", "SMF", "UPF", "UDM", "HSS", "PCF")
TENANTS = ("operator-a", "operator-b")
HYPERVISOR_ROLE = "compute"


@dataclass(frozen=True, slots=True)
class Machine:
    """A computer of the cloud; `hypervisor` and `tenant` are None for a physical one."""

    name: str
    type: str
    site: str
    role: str
    hypervisor: str | None = None
    tenant: str | None = None
    workload: str | None = None

    def inventory(self, valid_from_unix_nano: int) -> dict[str, Any]:
        """The record of the `inventory` topic for this machine; facts that are None are left out."""
        facts = {name: getattr(self, name) for name in FACTS}
        record = {"machine": self.name, **facts, "valid_from_unix_nano": valid_from_unix_nano}
        return {key: value for key, value in record.items() if value is not None}

    def resource(self) -> dict[str, str]:
        """The OTLP resource attributes of what this machine sends."""
        return {"host.name": self.name, "os.type": "linux", "service.namespace": self.site}


def build(machines: int = 28, sites: int = 2, prefix: str = "") -> tuple[Machine, ...]:
    """A cloud of `machines` in all: hypervisors first, one in seven and at least one a site, then virtual machines.

    Names and sites begin with `prefix`, so that several clouds can stand side by side.

    Raises:
        UserError: fewer than one site, or too few machines for the sites.
    """
    if sites < 1:
        raise UserError(f"sites {sites}: give at least 1")
    if machines < 2 * sites:
        raise UserError(f"machines {machines}: give at least {2 * sites}, a hypervisor and a guest for each site")
    count = max(sites, round(machines / MACHINES_PER_HYPERVISOR))
    hypervisors = tuple(_hypervisor(number, sites, prefix) for number in range(count))
    return hypervisors + tuple(_guest(f"{prefix}vm-{n + 1:02d}", n, hypervisors) for n in range(machines - count))


def newcomers(machines: tuple[Machine, ...], names: Iterable[str]) -> tuple[Machine, ...]:
    """Virtual machines of these names that join the cloud later."""
    hypervisors = tuple(machine for machine in machines if machine.type == "physical")
    first = len(machines) - len(hypervisors)
    return tuple(_guest(name, first + n, hypervisors) for n, name in enumerate(names))


def _guest(name: str, number: int, hypervisors: tuple[Machine, ...]) -> Machine:
    # Host, tenant and role go round by turns.
    host = hypervisors[number % len(hypervisors)]
    tenant = TENANTS[number // len(NETWORK_FUNCTIONS) % len(TENANTS)]
    role = NETWORK_FUNCTIONS[number % len(NETWORK_FUNCTIONS)]
    return Machine(name, "virtual", host.site, role, host.name, tenant)


def _hypervisor(number: int, sites: int, prefix: str) -> Machine:
    return Machine(f"{prefix}hv-{number + 1:02d}", "physical", f"{prefix}site-{number % sites + 1}", HYPERVISOR_ROLE)
