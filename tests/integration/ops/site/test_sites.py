"""Two sites and a centre, which gets what is sent to them by MirrorMaker 2: it says of their machines what they say."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import orjson
import pytest
from confluent_kafka import Producer
from prometheus_client import REGISTRY

from jobs.runtime.watermarks import last_watermarks
from ops.simulator.faults import SECOND
from ops.site.mirror import mirrored
from tests.chaos.reading import Record, read_topic
from tests.integration.ops.records import assert_same, by_machine, each_event, parsed
from tests.integration.ops.site.two_sites import CUT, CUT_S, KILLS, SENT, Sites
from tests.integration.ops.small_chain import PATIENCE
from tests.replay.report import Report
from tests.waiting import until

LATENESS = 20
pytestmark = [pytest.mark.slow, pytest.mark.timeout(6 * PATIENCE + 3 * CUT_S)]


def test_a_site_that_is_cut_off_holds_back_nothing_of_another(judged: Sites, report: Report):
    events = each_event(judged.said("dc1", "events"))
    assert_same("events of dc1", events, each_event(judged.said_of("dc1", "events")))
    compared = _same_statistics(judged, "dc1", SENT - 3 * LATENESS)
    facts = {"site": "dc1", "kills": len(KILLS), "events": events.total(), "statistics": compared}
    report.add("the same bytes", **facts, same_bytes=True)


def test_a_site_that_is_cut_off_is_the_same_up_to_the_cut(judged: Sites):
    assert _same_statistics(judged, "dc2", CUT - 2 * LATENESS)


def test_the_centre_shows_how_far_each_site_has_come(judged: Sites, report: Report):
    (times,) = (one.samples for one in REGISTRY.collect() if one.name == "kappa_site_event_time_seconds")
    newest = {site: max(one.value for one in times if one.labels["site"].startswith(site)) for site in judged.chains}
    behind = newest["dc1"] - newest["dc2"]
    assert CUT_S - 3 * LATENESS <= behind <= CUT_S + LATENESS
    report.add("a site that is behind", behind_s=behind)


def test_what_comes_after_the_cut_is_late_and_nothing_is_lost(back: Sites, report: Report):
    events = each_event(back.said("dc2", "events"))
    assert_same("events of dc2", events, each_event(back.said_of("dc2", "events")))
    theirs = [_rejected(back.said(site, "events.rejected")) for site in back.chains]
    centre = back.centre.settings.kafka_bootstrap
    assert_same("events.rejected", sum(theirs, Counter()), _rejected(read_topic(centre, "events.rejected")))
    # Beside what is late on the site, too, what is older than the centre's watermark when the site is back.
    own, late = each_event(back.said("dc2", "events.late")), each_event(back.said_of("dc2", "events.late"))
    behind = late - own
    assert own <= late and behind and behind <= events
    assert _same_statistics(back, "dc1", SENT - 3 * LATENESS)
    report.add("a site that was cut off", cut_s=CUT_S, late=behind.total(), lost=0, duplicated=0)


def test_each_record_is_at_the_centre_once_in_its_partition_in_order_with_its_time(back: Sites):
    for topic in mirrored(back.centre.topics):
        at_centre = _in_order(read_topic(back.centre.settings.kafka_bootstrap, topic.name))
        for site in back.chains:
            for partition, own in _in_order(back.said(site, topic.name)).items():
                theirs = Counter(own)
                assert [one for one in at_centre[partition] if one in theirs] == own, (site, topic.name)
        count = sum(len(back.said(site, topic.name)) for site in back.chains)
        assert sum(map(len, at_centre.values())) == count, topic.name


def test_what_was_aborted_on_a_site_stays_there(back: Sites):
    site, topic = back.chains["dc1"].settings.kafka_bootstrap, "telemetry.otlp.logs"
    producer = Producer({"bootstrap.servers": site, "transactional.id": "a collector"})
    producer.init_transactions()
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush()
        end()

    def at_the_centre() -> list[bytes | None]:
        return [record.value for record in read_topic(back.centre.settings.kafka_bootstrap, topic, tail=100)]

    until(lambda: b"committed" in at_the_centre(), PATIENCE, "what was committed has not come")
    assert b"aborted" not in at_the_centre()


def _same_statistics(sites: Sites, site: str, seconds: int) -> int:
    """Windows of the site's machines that end by this second of the simulation: how many; the same in both chains."""
    own, found = sites.said(site, "statistics"), sites.said_of(site, "statistics")
    until_ns = min(_end(record) for record in own if record.key) + seconds * SECOND
    for chain in (sites.chains[site], sites.centre):
        assert min(last_watermarks(chain.settings.kafka_bootstrap, "statistics").values()) >= until_ns
    expected = _closed(own, until_ns)
    assert_same(f"statistics of {site}", expected, _closed(found, until_ns))
    return expected.total()


def _end(record: Record) -> int:
    return parsed(record)["window"]["end_unix_nano"]


def _closed(records: Iterable[Record], until_ns: int) -> Counter:
    """The statistics of windows that end by then."""
    return by_machine(record for record in records if record.key and _end(record) <= until_ns)


def _rejected(records: Iterable[Record]) -> Counter:
    """Dead letters, but for where the records stood."""
    found = map(parsed, records)
    return Counter((one["code"], one.get("machine"), one.get("value"), orjson.dumps(one.get("batch"))) for one in found)


def _in_order(records: Iterable[Record]) -> dict[int, list[tuple[bytes | None, bytes | None, int]]]:
    found = defaultdict(list)
    for record in records:
        found[record.place.partition].append((record.key, record.value, record.timestamp_ms))
    return found
