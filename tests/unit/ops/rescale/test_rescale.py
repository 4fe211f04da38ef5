"""A shard's state becomes those of its parts. The whole is tested in tests/integration/ops/rescale."""

from types import SimpleNamespace

import orjson

from connectors.kafka.partitioner import partition_of
from ops.rescale.division import Division
from ops.rescale.rescale import divide, first_common_ms

KEYS = [f"vm-{number}" for number in range(100)]


class Names:
    """A fold's state that consists of the machines that it knows, and what is for all."""

    def __init__(self, parts):
        self.names, self.watermark = orjson.loads(parts["names"]), parts["watermark"]

    def retain(self, mine):
        self.names = [name for name in self.names if mine(name)]

    def dump(self):
        return {"names": orjson.dumps(self.names), "watermark": self.watermark}


def test_each_machine_is_in_the_part_in_which_kafka_has_its_records_from_now_on():
    names = {shard: [key for key in KEYS if partition_of(key.encode(), 4) == shard] for shard in range(4)}
    states = {shard: {"names": orjson.dumps(found), "watermark": b"%d" % shard} for shard, found in names.items()}
    divided = divide(states, Names, Division.into(12, 4))
    assert {key: shard for shard, parts in divided.items() for key in orjson.loads(parts["names"])} == {
        key: partition_of(key.encode(), 12) for key in KEYS
    }
    assert {shard: parts["watermark"] for shard, parts in divided.items()} == {
        shard: b"%d" % (shard % 4) for shard in range(12)
    }


def test_a_machine_that_had_left_its_shard_stays_in_one_part():
    """Its workload became another one, so that its records go elsewhere; what it left still ends in good order."""
    divided = divide({0: {"names": orjson.dumps(KEYS), "watermark": b"1"}}, Names, Division.into(8, 4))
    found = [orjson.loads(parts["names"]) for parts in divided.values()]
    assert sorted(found[0] + found[1]) == sorted(KEYS)
    assert [*divided] == [0, 4]


def test_generations_are_compared_behind_all_telemetry_that_was_read_before_the_savepoint():
    """The last record of `events` may have the time of the first of those that it was made of."""
    saved = SimpleNamespace(
        queries={"enrichment": SimpleNamespace(offsets={("telemetry.metrics", 0): 70})}, ends={("events", 0): 9}
    )
    times = {("telemetry.metrics", 0, 70): 8_000, ("events", 0, 9): 5_000}
    log = SimpleNamespace(times=lambda offsets: {place: times[*place, offset] for place, offset in offsets.items()})
    assert first_common_ms(saved, log) == 8_001
