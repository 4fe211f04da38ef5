"""A chain is moved to another cluster, where its records stand at other offsets, and goes on as if it had stayed."""

from pathlib import Path

import pytest

from infra.errors import UserError
from ops.replay.registry import Registry
from ops.savepoints import chain as sets
from ops.savepoints import savepoints
from ops.site.mirror import everything
from tests.chaos.reading import read_topic
from tests.integration.conftest import free_ports
from tests.integration.ops.records import assert_same, by_machine, each_event
from tests.integration.ops.site.mirroring import Arrivals, between, mirror_maker, sent
from tests.integration.ops.small_chain import PATIENCE, SECONDS, SmallChain
from tests.replay.report import Report

MOVED = 150  # the second of the simulation: in the midst of a silence
JOBS = ("enrichment", "statistics", "detector", "incidents", "archive")
FORMS = {"events": each_event, "statistics": by_machine, "novelties": by_machine, "incidents": by_machine}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(6 * PATIENCE)]


def records(chain: SmallChain, topic: str):
    return read_topic(chain.settings.kafka_bootstrap, topic)


def restore(name: str, chain: SmallChain) -> None:
    registry = Registry.read(chain.settings.kafka_bootstrap)
    sets.restore(savepoints.read(name, chain.settings), chain.settings, registry, chain.topics)


@pytest.fixture(scope="module")
def there(new_chain) -> SmallChain:
    """The other cluster, with its topics."""
    return new_chain("there")


def test_a_chain_that_is_moved_says_what_it_would_have_said(small_chain: SmallChain, there: SmallChain, tmp_path: Path):
    here = small_chain
    here.feed_until(MOVED)
    here.start()
    here.stop()
    saved = sets.create("move", here.settings, JOBS, here.topics, here.spark)
    savepoints.export(saved, here.settings, tmp_path / "move.tgz")
    savepoints.take_in(tmp_path / "move.tgz", None, there.settings)
    with pytest.raises(UserError, match="has it been mirrored so far"):
        restore("move", there)

    whole, arrivals = everything(here.topics), Arrivals(there, everything(there.topics))
    mirror = mirror_maker(between("old", here, there), whole, free_ports(1), tmp_path)
    mirror.start()
    try:
        here.feed_until(SECONDS)
        arrivals.wait_for(sum(len(records(here, topic.name)) for topic in whole))
    finally:
        mirror.clean()
        arrivals.close()
    assert sent(there) > sent(here)  # with the markers of the mirror's transactions

    restore("move", there)
    there.start()
    there.stop()
    # What it would have said if it had stayed.
    here.start()
    here.stop()
    compared = {}
    for topic, form in FORMS.items():
        expected = form(records(here, topic))
        assert_same(topic, expected, form(records(there, topic)))
        compared[topic] = expected.total()
    Report(Path("build/sites.json")).add("moved to another cluster", records=compared, lost=0, duplicated=0)
