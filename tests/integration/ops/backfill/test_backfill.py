"""The archive of a chain that ran through Kafka, run through the same jobs as a batch: the same records."""

from collections import Counter
from datetime import datetime

import pytest

from infra.errors import UserError
from ops.backfill.backfill import Backfill
from ops.backfill.run import Request, run
from ops.replay.diff import diff, reader
from ops.replay.registry import Registry
from tests.chaos.reading import read_table
from tests.integration.ops.small_chain import PATIENCE, SECONDS, SmallChain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(4 * PATIENCE)]
TOPICS = ("events", "events.late", "events.rejected", "statistics", "novelties", "incidents")


class KilledError(Exception):
    """What ends a backfill in the middle of a step."""


@pytest.fixture(scope="module")
def chain(small_chain: SmallChain) -> SmallChain:
    """It has run to the end of the simulation."""
    small_chain.feed_until(SECONDS)
    small_chain.start()
    small_chain.stop()
    return small_chain


def table(chain: SmallChain, name: str, *columns: str):
    settings = chain.settings.model_copy(update={"generation": "y1"})
    return read_table(settings.delta_of(name), list(columns))


def of_both(chain: SmallChain):
    """Reads a topic of the live generation from Kafka, one of the backfill from its table."""
    from_kafka = reader(chain.settings.kafka_bootstrap)

    def read(topic: str):
        if not topic.endswith(".y1"):
            yield from from_kafka(topic)
            return
        for row in table(chain, "log", "topic", "timestamp", "value"):
            if row["topic"] == topic:
                time: datetime = row["timestamp"]
                yield round(time.timestamp() * 1000), row["value"]

    return read


def test_a_backfill_that_is_killed_and_resumed_gives_the_same_records(chain: SmallChain, monkeypatch):
    request = Request("y1", step_records=300)
    append, appended = Backfill._append, []

    def killed(self, step, table, parts):
        if step == 1 and table.name != "log":
            raise KilledError
        append(self, step, table, parts)
        appended.append((step, table.name))

    monkeypatch.setattr(Backfill, "_append", killed)
    with pytest.raises(KilledError):
        run(request, chain.settings, chain.spark, lambda *_: None)
    assert appended[-1] == (1, "log")  # a step of which Delta has a part
    monkeypatch.setattr(Backfill, "_append", append)

    reported = []
    note = run(request, chain.settings, chain.spark, lambda done, total, _: reported.append((done, total)))
    total = reported[0][1]
    assert len(reported) > 1 and reported[-1] == (total, total)
    assert Registry.read(chain.settings.kafka_bootstrap).find("y1").state == "caught up"

    names = {key: (key, f"{key}.y1") for key in TOPICS}
    found = diff(names, of_both(chain))
    assert found.differences == []
    assert all(one == other > 0 for one, other in found.compared.values()), found.compared
    parsed = Counter(row["id"] for row in table(chain, "novelties", "id"))
    assert parsed.total() == found.compared["novelties"][1]
    places = Counter(
        (row["topic"], row["partition"], row["offset"]) for row in table(chain, "log", "topic", "partition", "offset")
    )
    assert set(places.values()) == {1} and places.total() == sum(
        end for (topic, _), end in note.ends.items() if topic != "statistics.early.y1"
    )


def test_another_range_under_the_same_name_is_refused(chain: SmallChain):
    with pytest.raises(UserError, match="--as y1: was begun with --from earliest --to latest, not with --from 2026-"):
        run(Request("y1", begin="2026-01-01"), chain.settings, chain.spark, lambda *_: None)
    with pytest.raises(UserError, match="the archive holds no telemetry of that time"):
        run(Request("y2", begin="2026-01-01", until="2026-01-02"), chain.settings, chain.spark, lambda *_: None)
