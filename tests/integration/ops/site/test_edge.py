"""Two edge sites: what their chains have found goes to a centre, which archives it and judges nothing itself."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from ops.site.mirror import findings, mirrored
from tests.chaos.processes import Job
from tests.chaos.reading import Record, read_table, read_topic
from tests.integration.conftest import free_ports
from tests.integration.ops.records import assert_same, by_machine, parsed
from tests.integration.ops.site.mirroring import Arrivals, between, mirror_maker
from tests.integration.ops.site.two_sites import Sites
from tests.integration.ops.small_chain import PATIENCE, SmallChain
from tests.replay.report import Report
from tests.waiting import until

FOUND = ("statistics", "novelties", "incidents")  # no rules are declared, so there are no alerts
pytestmark = [pytest.mark.slow, pytest.mark.timeout(6 * PATIENCE)]


@pytest.fixture(scope="module")
def edge(judged: Sites, new_chain, tmp_path_factory) -> SmallChain:
    """The centre has what both sites have found, through a kill of each mirror, and has archived it."""
    centre: SmallChain = new_chain("edge")
    centre.running = ("archive.log", "archive.novelties")
    topics, folder, port = findings(centre.topics), Path(tmp_path_factory.mktemp("edge")), free_ports(2)
    arrivals, expected = Arrivals(centre, topics), 0
    for number, (site, chain) in enumerate(judged.chains.items()):
        expected += sum(len(judged.said(site, topic.name)) for topic in topics)
        mirror = mirror_maker(between(site, chain, centre), topics, port + number, folder)
        try:
            _bring(mirror, arrivals, expected)
        finally:
            mirror.clean()
    arrivals.close()
    centre.start()
    centre.stop()
    return centre


def test_the_centre_has_what_each_site_has_found_once_and_nothing_else(edge: SmallChain, judged: Sites):
    for topic in edge.topics:
        found = by_machine(read_topic(edge.settings.kafka_bootstrap, topic.name))
        if topic.name in FOUND:
            assert_same(topic.name, _of_sites(judged, topic.name), found)
        else:
            assert not found, topic.name


def test_its_tables_have_it_too(edge: SmallChain, judged: Sites):
    rows = list(read_table(edge.settings.delta_of("log"), ["topic", "key", "value"]))
    for topic in FOUND:
        of_topic = ((row["key"].decode(), row["value"]) for row in rows if row["topic"] == topic and row["key"])
        assert_same(topic, _of_sites(judged, topic), Counter(of_topic))
    novelties = [parsed(one)["id"] for site in judged.chains for one in judged.said(site, "novelties") if one.key]
    table = read_table(edge.settings.delta_of("novelties"), ["id"])
    assert_same("novelties", Counter(novelties), Counter(row["id"] for row in table))


def test_what_that_takes_beside_the_telemetry(judged: Sites, report: Report):
    said = {topic.name: judged.said("dc1", topic.name) for topic in mirrored(judged.centre.topics)}
    telemetry = sum(map(_compressed, said.values()))
    found = {topic: _compressed(judged.said("dc1", topic)) for topic in FOUND}
    ratios = {topic: round(size / telemetry, 4) for topic, size in found.items()}
    facts = {"telemetry_bytes": telemetry, "found_bytes": found, "ratios": ratios}
    report.add("an edge site", **facts, bytes_ratio_edge=round(sum(found.values()) / telemetry, 4))
    assert 0 < found["novelties"] + found["incidents"] < telemetry / 10


def _bring(mirror: Job, arrivals: Arrivals, count: int) -> None:
    """Let the mirror run, and be killed once, until the centre has so many records."""
    before = arrivals.seen()
    mirror.start()
    until(lambda: arrivals.seen() > before, PATIENCE, "nothing comes to the centre")
    mirror.kill()
    mirror.start()
    arrivals.wait_for(count)


def _of_sites(sites: Sites, topic: str) -> Counter:
    return sum((by_machine(sites.said(site, topic)) for site in sites.chains), Counter())


def _compressed(records: Iterable[Record]) -> int:
    """Bytes of their values in one piece, by zstd."""
    return len(pa.compress(b"".join(one.value or b"" for one in records), "zstd", asbytes=True))
