"""Which of the new partitions takes over what of an old one."""

import orjson
import pytest

from connectors.kafka.partitioner import partition_of
from infra.errors import UserError
from ops.rescale.division import Division

KEYS = [f"vm-{number}" for number in range(300)]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (4, 8), (4, 16), (3, 9)])
def test_a_key_moves_to_a_part_of_its_partition_which_is_where_kafka_puts_it(before, after):
    division, used = Division.into(after, before), set()
    for key in KEYS:
        parent, child = partition_of(key.encode(), before), partition_of(key.encode(), after)
        assert division.children(parent)[division.part_of(key)] == child
        used.add(child)
    assert used == set(range(after))
    assert sorted(child for parent in range(before) for child in division.children(parent)) == list(range(after))


def test_each_key_is_of_exactly_one_part():
    division = Division.into(12, 4)
    for key in KEYS:
        assert [division.mine(part)(key) for part in range(3)].count(True) == 1


@pytest.mark.parametrize("partitions", [1, 4, 6, 7])
def test_what_is_no_multiple_is_refused(partitions):
    with pytest.raises(UserError, match=f"--partitions {partitions}: there are 4, and each is divided: use 8, 12"):
        Division.into(partitions, 4)


def takers(record: object) -> list[int]:
    return Division.into(8, 4).takers(1, record if isinstance(record, bytes) else orjson.dumps(record))


def test_a_watermark_and_a_control_event_go_to_every_part():
    assert takers({"watermark_unix_nano": 5}) == [1, 5]
    assert takers({"machine": "vm-*", "kind": "control", "events": []}) == [1, 5]
    assert takers({"machine": "vm-1", "control": {"action": "reset"}}) == [1, 5]


def test_a_machines_record_goes_where_its_workload_or_it_is():
    for machine in KEYS:
        (found,) = takers({"machine": machine})
        assert found % 4 == 1 and found // 4 == partition_of(machine.encode(), 8) // 4
        member = {"machine": machine, "inventory": {"workload": "Deployment/shop/web"}}
        assert takers(member) == takers({"machine": "Deployment/shop/web"})


@pytest.mark.parametrize(
    "value", [b"no JSON", b"[1]", b"", b"null", b"{}", b'{"machine":{},"inventory":{"workload":[1]}}']
)
def test_what_no_job_can_use_goes_to_one_part(value):
    assert len(takers(value)) == 1
