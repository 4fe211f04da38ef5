"""The peers of `make bench-peers`: their command lines, how far they are, and what counts as the same result."""

from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from tests.bench.chain.latency import by_content
from tests.bench.peers import engines
from tests.bench.peers.content import Compared, Key, Said, compare, results
from tests.bench.peers.engines import Flink, KafkaStreams, Stage, StockSpark
from tests.bench.peers.trial import judged, summary

PARTITIONS = [("raw", 0), ("raw", 1)]


@pytest.fixture
def stage(tmp_path) -> Stage:
    return Stage("statistics", "peer.statistics.live", "raw", "127.0.0.1:9092", "inventory", 20_000, tmp_path)


def test_each_peer_is_told_what_to_read_and_to_write(stage, monkeypatch, tmp_path):
    (tmp_path / "flink-sql-connector-kafka-5.jar").touch()
    monkeypatch.setattr(engines, "fetch", lambda part, jars: tmp_path)
    for peer in (Flink(Path("python")), KafkaStreams("classes"), StockSpark()):
        command = peer.command(stage)
        told = {"topic=raw", "out=peer.statistics.live", "bootstrap=127.0.0.1:9092", "lateness_ms=20000"}
        assert told <= set(command), peer.name


def test_the_programs_are_those_of_the_stage(stage, monkeypatch, tmp_path):
    (tmp_path / "flink-sql-connector-kafka-5.jar").touch()
    monkeypatch.setattr(engines, "fetch", lambda part, jars: tmp_path)
    flink = Flink(Path("python")).command(stage)
    assert flink[2].endswith("statistics.sql") and Path(flink[2]).exists() and "lateness_s=20" in flink
    assert "kappa.bench.Statistics" in KafkaStreams("classes").command(stage)
    assert StockSpark().command(stage)[3] == "statistics"


def test_stock_spark_is_where_its_last_whole_micro_batch_ended(stage):
    spark = StockSpark()
    assert spark.committed(stage, None, PARTITIONS) == {("raw", 0): 0, ("raw", 1): 0}
    for number, ends in enumerate(({"0": 5, "1": 6}, {"0": 9, "1": 9})):
        offsets = stage.folder / "offsets" / str(number)
        offsets.parent.mkdir(exist_ok=True)
        offsets.write_text("v1\n{}\n" + orjson.dumps({"raw": ends}).decode())
    (stage.folder / "commits").mkdir()
    (stage.folder / "commits" / "0").touch()
    (stage.folder / "commits" / ".1.tmp").touch()
    assert spark.committed(stage, None, PARTITIONS) == {("raw", 0): 5, ("raw", 1): 6}


def test_a_record_may_be_a_table_or_a_row():
    window = {"start_unix_nano": 10, "end_unix_nano": 20}
    columns = {"series": ["cpu", "sent"], "count": [2, 3], "sum": [1.5, 7.0], "rate": [None, True]}
    table = orjson.dumps({"machine": "m", "window": window, "statistics": columns})
    row = orjson.dumps({"machine": "m", "series": "cpu", "start_unix_nano": 10, "count": 2, "sum": 1.5})
    cpu = (Key("m", "cpu", 10), Said(2, 1.5))
    assert list(results(table)) == [cpu, (Key("m", "sent", 10), Said(3, None))]
    assert list(results(row)) == [cpu]
    assert list(results(b'{"watermark_unix_nano":30}')) == []


def test_windows_are_compared_up_to_the_last_that_both_have_closed():
    ours = {Key("m", "cpu", start): Said(2, 0.1 + 0.2) for start in (10, 20, 30)}
    theirs = {Key("m", "cpu", start): Said(2, 0.3) for start in (10, 20)}
    assert compare(ours, theirs) == Compared(2, 0)


@pytest.mark.parametrize(
    "other",
    [
        {},  # the machine is missing
        {Key("m", "cpu", 20): Said(2, 1.0)},  # a window is missing
        {Key("m", "cpu", 10): Said(3, 1.0), Key("m", "cpu", 20): Said(2, 1.0)},
        {Key("m", "cpu", 10): Said(2, 1.1), Key("m", "cpu", 20): Said(2, 1.0)},
    ],
)
def test_what_differs_is_counted(other):
    ours = {Key("m", "cpu", start): Said(2, 1.0) for start in (10, 20)}
    assert compare(ours, other).different == (1 if other else 2)


def test_of_a_counter_only_the_count_is_compared():
    assert compare({Key("m", "sent", 10): Said(2, None)}, {Key("m", "sent", 10): Said(2, 99.0)}) == Compared(1, 0)


def test_rounds_become_means_and_ratios():
    def of(rate: float) -> dict[str, dict[str, float]]:
        figures = {"events_per_s": rate, "cpu_seconds_per_million": 2.0, "peak_megabytes": rate}
        return {stage: dict(figures) for stage in engines.STAGES}

    found = summary([{"ours": of(100), "flink": of(40)}, {"ours": of(200), "flink": of(60)}])
    expected = {"events_per_s": 50, "cpu_seconds_per_million": 2.0, "peak_megabytes": 60, "ratio": 3.0}
    assert found["flink"]["statistics"] == expected


@pytest.mark.parametrize(("compared", "passed"), [((5, 0), True), ((5, 1), False), ((0, 0), False)])
def test_it_is_passed_if_something_was_compared_and_nothing_differs(compared, passed):
    assert judged([{"flink": Compared(*compared)}])["passed"] is passed


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b'{"id":"a","source":{"timestamp_unix_milli":1500}}', 1.5),
        (b'{"window":{"start_unix_nano":1,"end_unix_nano":2500000000}}', 2.5),
    ],
)
def test_the_time_of_a_record_is_found_in_its_content(value, seconds):
    assert by_content(SimpleNamespace(value=lambda: value)) == seconds
