"""`kappa detector explain` and `backtest` over statistics on a real broker, and in a Delta table that Spark wrote."""

from datetime import UTC, datetime

import orjson
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from connectors.kafka.admin import connect, set_config
from connectors.kafka.offsets import Log
from connectors.kafka.producer import write_now
from infra.errors import UserError
from jobs.detector.control import TOPIC, suppress
from jobs.detector.job import for_one_shard
from jobs.detector.rules import Rule
from jobs.detector.shard import fold
from ops.backtest import cli
from ops.commands import detector
from tests.integration.enrichment import own_map
from tests.unit.ops.backtest.recorded import BURST, FAINT, FIRST, SETTINGS, SIZE, WINDOWS, stream

PARTITION = 1
BEGIN = datetime.fromtimestamp((FIRST + 100) * SIZE / 1e9, UTC).isoformat()
END = datetime.fromtimestamp((FIRST + WINDOWS) * SIZE / 1e9, UTC).isoformat()


@pytest.fixture(scope="module")
def topics(servers):
    with own_map(servers.bootstrap, partitions=2) as mapped:
        forever = {mapped[key].name: {"retention.ms": "-1"} for key in ("statistics", "novelties")}
        set_config(connect(servers.bootstrap), forever)  # the records are some years old
        yield mapped


@pytest.fixture(scope="module")
def novelties(servers, topics):
    """What the detector said of the recorded statistics, which are on the broker, too."""
    found = fold(None, stream(), for_one_shard(SETTINGS, topics))[1]
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    for value in stream():
        producer.produce(topics["statistics"].name, value, partition=PARTITION, timestamp=time_of(value))
    for novelty in found:
        time = novelty["time_unix_nano"] // 1_000_000
        producer.produce(topics["novelties"].name, orjson.dumps(novelty), partition=PARTITION, timestamp=time)
    assert producer.flush(30) == 0
    assert sum(Log(servers.bootstrap).ends([topics["statistics"].name]).values()) == len(stream())
    return found


def time_of(value):
    """Its Kafka timestamp, as the statistics job writes it."""
    record = orjson.loads(value)
    return record.get("watermark_unix_nano", record.get("window", {}).get("end_unix_nano")) // 1_000_000


@pytest.fixture
def kappa(servers, topics, monkeypatch):
    """`kappa detector ...` on this test's topics: what it printed, as JSON."""
    monkeypatch.setattr(cli, "topics_of", lambda _: topics)

    def run(*arguments, code=0):
        done = CliRunner().invoke(detector.app, [*arguments, "--bootstrap", servers.bootstrap, "--json"])
        assert done.exit_code == code, done.output
        return orjson.loads(done.stdout) if code == 0 else done.exception

    return run


@pytest.fixture(scope="module")
def archive(spark, topics, tmp_path_factory):
    """The table `log`, in the order in which nobody would read it."""
    folder = tmp_path_factory.mktemp("delta")
    rows = [
        (topics["statistics"].name, PARTITION, offset, time_of(value), value) for offset, value in enumerate(stream())
    ]
    frame = spark.createDataFrame(rows[::-1], "topic string, partition int, offset long, ms long, value binary")
    whole = frame.selectExpr("*", "timestamp_millis(ms) as timestamp", "to_date(timestamp_millis(ms)) as date")
    whole.drop("ms").repartition(3).write.format("delta").partitionBy("topic", "date").save(f"{folder}/live/log")
    return folder


def burst(novelties):
    time = (FIRST + BURST) * SIZE
    return next(one for one in novelties if one["phase"] == "start" and one["time_unix_nano"] == time)


def gone(report):
    return [(change["kind"], change["before"]["machine"]) for change in report["changes"]]


@pytest.mark.parametrize("source", ["kafka", "delta"])
def test_a_smaller_budget_leaves_out_the_faint_one(kappa, novelties, archive, monkeypatch, source):
    monkeypatch.setenv("KAPPA_DELTA", str(archive))
    report = kappa(
        *("backtest", "--set", "alarms_per_day=0.002", "--from", BEGIN, "--to", END, "--learn", "0.2"),
        *("--source", source),
    )
    assert (gone(report), report["same"]) == ([("gone", "vm-b")], 1)
    assert report["alerted"] == {"before": 2, "after": 1}
    assert report["changes"][0]["before"]["time_unix_nano"] == (FIRST + FAINT) * SIZE
    assert report["learned_from_unix_nano"] == (FIRST + 100 - 72) * SIZE


def test_without_a_change_the_same_code_says_what_was_recorded(kappa, novelties):
    report = kappa("backtest", "--from", BEGIN)
    assert (report["changes"], report["same"], report["set"]) == ([], 2, {})


def test_a_novelty_is_explained_by_its_partition(kappa, novelties):
    found = kappa("explain", burst(novelties)["id"])
    assert found["novelty"]["phase"] == "end"
    assert found["replayed"]["id"] == burst(novelties)["id"]
    assert found["models"]["cpu"]["seen"] == BURST
    assert [one["alert"] is not None for one in found["budgets"]] == [True] * 5


def test_what_an_operator_said_since_then_changes_nothing_and_is_not_shown(kappa, servers, topics, novelties):
    """The rule was made years after the recorded time."""
    rule = suppress(Rule(machine="vm-a"))
    write_now(servers.bootstrap, topics[TOPIC].name, "vm-a", orjson.dumps({**rule, "by": "eva"}))
    found = kappa("explain", burst(novelties)["id"])
    assert (found["orders"], found["without_orders"]["id"]) == ([], burst(novelties)["id"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "none"], "NOVELTY 'none': .* holds none of this id"),
        (["backtest", "--from", "yesterday"], "'yesterday' is no time"),
        (["backtest", "--from", END, "--to", BEGIN], "--to .*: it must be after --from"),
        (["backtest", "--from", BEGIN, "--set", "alarms_per_day"], "--set 'alarms_per_day': write setting=value"),
        (["backtest", "--from", BEGIN, "--set", "alarms=1"], "detector.alarms=1: detector has window_seconds"),
        (["backtest", "--from", "2100-01-01T00:00:00Z"], "holds nothing since then"),
    ],
)
def test_what_cannot_be_done_is_said(kappa, novelties, arguments, message):
    with pytest.raises(UserError, match=message):
        raise kappa(*arguments, code=1)
