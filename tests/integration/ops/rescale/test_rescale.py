"""The chain goes on with more partitions, from a savepoint that was taken while it ran, and says the same."""

from collections import Counter
from collections.abc import Mapping

import orjson
import pytest

from infra.contract.sharding import shard_key
from infra.errors import UserError
from ops.replay import diff
from ops.replay.registry import Generation, Registry
from ops.rescale.rescale import Rescaler, Rescaling
from ops.savepoints import chain as sets
from ops.savepoints.saved import ChainSavepoint
from tests.chaos.reading import Record, read_topic
from tests.integration.ops.records import assert_same, by_machine, each_event, parsed
from tests.integration.ops.small_chain import PATIENCE, SECONDS, SmallChain
from tests.replay.report import Report

JOBS = ("enrichment", "statistics", "detector", "incidents", "archive")
PARTITIONS = 4  # from 2
pytestmark = [pytest.mark.slow, pytest.mark.timeout(6 * PATIENCE)]


@pytest.fixture(scope="module")
def saved(small_chain: SmallChain) -> ChainSavepoint:
    """A savepoint of the chain at work; it has gone on to its end since."""
    chain = small_chain
    chain.start_and_move()
    found = sets.create("middle", chain.settings, JOBS, chain.topics, chain.spark)
    chain.feed_until(SECONDS)
    chain.stop()
    return found


def rescaler(chain: SmallChain, saved: ChainSavepoint, partitions: int, name: str = "wide") -> Rescaler:
    registry = Registry.read(chain.settings.kafka_bootstrap)
    return Rescaler(Rescaling(name, partitions), saved, registry, chain.settings)


def test_what_does_not_fit_is_refused_before_anything_is_made(small_chain: SmallChain, saved: ChainSavepoint):
    with pytest.raises(UserError, match="--partitions 3: there are 2, and each is divided: use 4, 6"):
        rescaler(small_chain, saved, 3)
    gone = saved.model_copy(update={"queries": {k: v for k, v in saved.queries.items() if k != "enrichment"}})
    with pytest.raises(UserError, match="savepoint 'middle': enrichment has done no batch yet"):
        rescaler(small_chain, gone, 4)
    assert not [topic for topic in small_chain.log.admin.list_topics().topics if topic.endswith(".wide")]


def test_more_partitions_say_the_same_of_each_machine(small_chain: SmallChain, saved: ChainSavepoint):
    said: list[str] = []
    made = rescaler(small_chain, saved, PARTITIONS).run(small_chain.spark, said.append)
    wide = small_chain.of_generation("wide")
    planned = Registry.read(small_chain.settings.kafka_bootstrap).find("wide")
    assert planned.model_copy(update={"by": ""}) == made
    assert {"carrying over what is under way in statistics", "dividing the state of detector"} <= {*said}
    wide.start()
    wide.stop()

    bootstrap, queries = small_chain.settings.kafka_bootstrap, saved.queries
    begins = {  # of each topic, from where on the new generation has what the live one has
        "events": queries["statistics"].offsets,
        "statistics": queries["detector"].offsets,
        "novelties": queries["incidents"].offsets,
        "incidents": saved.ends,
    }
    for topic, begin in begins.items():
        live = [one for one in read_topic(bootstrap, topic) if one.place.offset >= begin[topic, one.place.partition]]
        found = read_topic(bootstrap, f"{topic}.wide")
        assert_same(topic, FORMS[topic](live), FORMS[topic](found))
        if topic != "incidents":
            assert {one.place.partition for one in found} == set(range(PARTITIONS))
            assert_each_machine_in_one_partition(found)
    compared = compare(small_chain, wide, made)
    Report().add("more partitions", partitions=(2, PARTITIONS), records=compared, different=0)


def compare(live: SmallChain, wide: SmallChain, made: Generation) -> Mapping[str, tuple[int, int]]:
    """`kappa replay diff live wide` finds no more than the numbers of shards' machines; what it has compared."""
    topics = diff.differing_topics(live.topics, wide.topics, JOBS)
    found = diff.diff(topics, diff.reader(live.settings.kafka_bootstrap), made.begin_ms or 0)
    assert all(one == other > 0 for one, other in found.compared.values() if one), found.compared
    assert found.compared["statistics"][0] > 20
    assert {name for one in found.differences for name in one.fields} <= {"peers", "causes", "text"}
    return found.compared


def each_novelty(records: list[Record]) -> Counter[tuple[str, bytes]]:
    """Each novelty, but for how many machines its shard has (`peers`)."""
    found = [parsed(record) for record in records if record.key is not None]
    return Counter((one["machine"], orjson.dumps(one | {"peers": None})) for one in found)


def each_incident(records: list[Record]) -> Counter[tuple[str, bytes]]:
    """Each incident, but for its causes, which weigh how many machines of a group the shards of its novelties have."""
    found = [parsed(record) for record in records]
    return Counter((one["id"], orjson.dumps(one | {"causes": None, "text": None})) for one in found)


# Batches decide which events stand together.
FORMS = {"events": each_event, "statistics": by_machine, "novelties": each_novelty, "incidents": each_incident}


def assert_each_machine_in_one_partition(records: list[Record]) -> None:
    places: dict[str, set[int]] = {}
    for record in records:
        if record.key is not None:
            one = parsed(record)
            places.setdefault(shard_key(one["machine"], one.get("inventory")), set()).add(record.place.partition)
    assert all(len(found) == 1 for found in places.values()), places
