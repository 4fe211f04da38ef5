"""What decides which partition, and so which shard of a fold, a machine's records are in."""

from collections.abc import Callable, Mapping
from typing import Any

from infra.contract.inventory import WORKLOAD

# Whether the machines of a key are the shard's own. Of the shards that one is divided into, exactly one says so of each
# key: also of a key that would not have come to the shard that is divided.
Mine = Callable[[str], bool]


def shard_key(machine: str, inventory: Mapping[str, Any] | None) -> str:
    """The key by which a machine with these facts has its partition: its workload's name, or else its own.

    The members of a workload are in one partition: they are judged together. Enrichment says the same in Spark's terms.
    """
    workload: str | None = (inventory or {}).get(WORKLOAD)
    return workload or machine
