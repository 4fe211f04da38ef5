"""What decides a machine's partition."""

import pytest

from infra.contract.sharding import shard_key


@pytest.mark.parametrize(
    ("inventory", "key"),
    [
        (None, "web-1"),
        ({"known": True, "site": "lund"}, "web-1"),
        ({"workload": None}, "web-1"),
        ({"workload": ""}, "web-1"),
        ({"workload": "deployment/shop/web"}, "deployment/shop/web"),
    ],
)
def test_a_machine_has_the_partition_of_its_workload_or_else_its_own(inventory, key):
    assert shard_key("web-1", inventory) == key
