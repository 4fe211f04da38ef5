"""The facts of a machine in the inventory, from which schemas, documents, enrichment, CLI, simulator derive theirs."""

from typing import Literal

from pydantic import BaseModel


class Facts(BaseModel):
    """The facts of one machine; None where a fact isn't known."""

    type: Literal["physical", "virtual"] | None = None
    site: str | None = None
    hypervisor: str | None = None  # of a virtual machine: the physical one that it runs on
    tenant: str | None = None
    role: str | None = None


FACTS = tuple(Facts.model_fields)  # the names of the facts, in the order that they have in records
