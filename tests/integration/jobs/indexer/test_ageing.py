"""Indices roll over and are deleted on a real server; what is repeated finds its documents; what is refused waits."""

import multiprocessing
import random
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from prometheus_client import REGISTRY

from jobs.indexer import indexer, indices
from jobs.indexer.index_names import anchor_of, index_of
from jobs.indexer.settings import IndexerSettings
from tests.integration.jobs.indexer.conftest import SECOND, START, Chain, poll_until, window
from tests.integration.jobs.indexer.test_indexer import novelty

DAY = 86_400
FIRST = "2026-09-21"  # the day of START, 13:33 UTC


def declare(chain: Chain, tmp_path: Path, text: str) -> None:
    file = tmp_path / "indices.yaml"
    file.write_text(text)
    chain.own = IndexerSettings(indices=file)


def of_day(day: int, number: int = 0, machine: str = "vm-1") -> dict:
    record = window(machine, number)
    shift = day * DAY * SECOND
    moved = {name: record["window"][name] + shift for name in ("start_unix_nano", "end_unix_nano")}
    return record | {"id": f"{machine}-{day}-{number}", "window": record["window"] | moved}


def names(chain: Chain, kind: str = "statistics") -> list[str]:
    """The indices of a kind without their alias, but for the anchor."""
    alias = index_of(kind, chain.generation)
    found = chain.elasticsearch.indices.get(index=f"{alias}.*").body
    return sorted(name.removeprefix(f"{alias}.") for name in found if name != anchor_of(alias))


def by_day(chain: Chain) -> Counter:
    days = (document["@timestamp"] * 1_000_000 - START for document in chain.documents("statistics").values())
    return Counter(milli // (DAY * SECOND) for milli in days)


def hits(chain: Chain, kind: str = "statistics") -> list[str]:
    """The ids in all indices of a kind, twice if two of them have one."""
    alias = index_of(kind, chain.generation)
    chain.elasticsearch.indices.refresh(index=alias)
    return [hit["_id"] for hit in chain.elasticsearch.search(index=alias, size=10_000, source=False)["hits"]["hits"]]


def waits(cause: str) -> bool:
    return REGISTRY.get_sample_value("kappa_indexer_waiting", {"cause": cause}) == 1


@pytest.fixture(autouse=True)
def _ages_at_once(monkeypatch):
    monkeypatch.setattr(indices, "AGEING_SECONDS", 0.0)


DAILY = """
defaults: {period: 1d, retention: 2d, documents: 1000000, bytes: 1GB}
kinds: {statistics: {}, novelties: {period: 30d, retention: 365d}, incidents: {}, rejected: {}}
"""


def test_each_day_has_its_index_and_old_ones_are_deleted_whole(chain: Chain, tmp_path):
    declare(chain, tmp_path, DAILY)
    with chain.indexer():
        for day in range(6):
            chain.send("statistics", of_day(day), of_day(day, 1), key="vm-1")
            poll_until(chain.settled, f"day {day}")
        poll_until(lambda: len(names(chain)) == 3, "the old ones are deleted")
        assert names(chain) == [f"2026-09-{day}.1d.1" for day in (24, 25, 26)]
        expired = REGISTRY.get_sample_value(
            "kappa_indexer_expired_documents_total", {"index": index_of("statistics", chain.generation)}
        )
        chain.send("statistics", of_day(0, 7), of_day(4, 7), key="vm-1")
        poll_until(chain.settled, "one out of date, one late")
    assert by_day(chain) == {3: 4, 4: 6, 5: 4}
    assert names(chain) == [f"2026-09-{day}.1d.1" for day in (24, 25, 26)], "no index is made again"
    after = REGISTRY.get_sample_value(
        "kappa_indexer_expired_documents_total", {"index": index_of("statistics", chain.generation)}
    )
    assert after == (expired or 0) + 2
    assert chain.records("events.rejected") == []


SMALL = DAILY.replace("documents: 1000000", "documents: 40")


def test_a_repeat_finds_its_documents_in_the_indices_before(chain: Chain, tmp_path):
    declare(chain, tmp_path, SMALL)
    with chain.indexer():
        for part in range(4):
            chain.send("statistics", *(of_day(0, part * 25 + number) for number in range(25)), key="vm-1")
            poll_until(chain.settled, "a part")
            poll_until(lambda: len(names(chain)) == part + 2, "a roll-over")  # noqa: B023
        chain.send("novelties", novelty("n1", "start", 0, 9.0))
        poll_until(chain.settled, "the novelty")
    before = sorted(hits(chain))
    assert len(before) == len({*before}) == 200
    assert names(chain) == [f"{FIRST}.1d.{part}" for part in (1, 2, 3, 4, 5)]

    chain.forget_positions()
    with chain.indexer():
        poll_until(chain.settled, "all again")
        chain.send("novelties", novelty("n1", "end", 60, 2.0))
        poll_until(lambda: chain.documents("novelties")["n1"]["phase"] == "end", "the end")
    assert sorted(hits(chain)) == before
    assert hits(chain, "novelties") == ["n1"]


def _run_hastily(settings, own, topics, never):
    indices.AGEING_SECONDS = 0.0
    indexer.run(settings, own, topics, never)


@contextmanager
def hasty_process(chain: Chain):
    spawning = multiprocessing.get_context("spawn")
    never = spawning.Event()
    process = spawning.Process(target=_run_hastily, args=(chain.settings, chain.own, chain.topics, never))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def test_kill_9_between_roll_overs_neither_loses_nor_doubles(chain: Chain, tmp_path):
    declare(chain, tmp_path, SMALL)
    moments = random.Random(31)
    for part in range(4):
        with hasty_process(chain) as process:
            before = sum(chain.lags())
            for number in range(part * 60, part * 60 + 60):
                chain.send("statistics", of_day(number % 2, number, f"vm-{number % 7}"), key=f"vm-{number % 7}")
            poll_until(lambda: sum(chain.lags()) < before + 60, "some progress")  # noqa: B023
            process.join(moments.uniform(0, 0.6))
    with chain.indexer():
        poll_until(chain.settled, "all committed")
    found = hits(chain)
    assert len(found) == len({*found}) == 2 * 240
    assert len(names(chain)) > 2, "it has rolled over"
    assert chain.records("events.rejected") == []


def test_new_indices_get_the_aliases_that_a_promotion_has_moved(chain: Chain, tmp_path):
    declare(chain, tmp_path, DAILY)
    alias = index_of("statistics", chain.generation)
    promoted, client = "kappa-statistics", chain.elasticsearch.indices
    with chain.indexer():
        chain.send("statistics", of_day(0), key="vm-1")
        poll_until(chain.settled, "day 0")
        client.put_alias(index=anchor_of(alias), name=promoted)
        chain.send("statistics", of_day(1), key="vm-1")
        poll_until(chain.settled, "day 1")
        poll_until(lambda: len(_having(client, alias, promoted)) == 3, "both and the anchor")
        client.delete_alias(index=anchor_of(alias), name=promoted)
        poll_until(lambda: not _having(client, alias, promoted), "none any more")


def _having(client, alias: str, wanted: str) -> set[str]:
    found = client.get_alias(index=f"{alias}.*").body
    return {index for index, one in found.items() if wanted in one["aliases"]}


@contextmanager
def cluster_setting(chain: Chain, **settings):
    flat = {name.replace("__", "."): value for name, value in settings.items()}
    cluster = chain.elasticsearch.cluster
    cluster.put_settings(persistent=flat)
    try:
        yield
    finally:
        cluster.put_settings(persistent=dict.fromkeys(flat))


def _goes_on(chain: Chain, cause: str, change: dict) -> None:
    """Under the change a new day's documents wait, none is lost or a dead letter, and afterwards all are there."""
    with chain.indexer() as running:
        chain.send("statistics", of_day(0), key="vm-1")
        poll_until(chain.settled, "before")
        with cluster_setting(chain, **change):
            chain.send("statistics", of_day(1), of_day(1, 1), key="vm-1")
            chain.send("novelties", novelty("n1", "start", 0, 9.0))
            poll_until(lambda: waits(cause), f"it waits: {cause}")
            assert running.running()
            assert not chain.settled()
        poll_until(chain.settled, "it goes on by itself")
        assert not waits(cause)
    assert by_day(chain) == {0: 2, 1: 4}
    assert chain.documents("novelties").keys() == {"n1"}
    assert chain.records("events.rejected") == []


def test_a_server_that_forbids_writes_is_waited_for(chain: Chain, tmp_path):
    declare(chain, tmp_path, DAILY)
    _goes_on(chain, "forbidden", {"cluster__blocks__read_only": True})


def test_a_cluster_without_room_for_a_shard_is_waited_for(chain: Chain, tmp_path):
    declare(chain, tmp_path, DAILY)
    _goes_on(chain, "full", {"cluster__max_shards_per_node": 1})


def test_a_full_disk_is_waited_for(chain: Chain, tmp_path):
    declare(chain, tmp_path, DAILY)
    disk = "cluster__routing__allocation__disk__"
    full = {f"{disk}watermark__{stage}": f"{n}%" for n, stage in enumerate(("low", "high", "flood_stage"), 1)}
    with chain.indexer() as running:
        chain.send("statistics", of_day(0), key="vm-1")
        poll_until(chain.settled, "before")
        with cluster_setting(
            chain, **full, **{f"{disk}threshold_enabled": True}, cluster__info__update__interval="10s"
        ):
            poll_until(lambda: _is_flooded(chain), "the server has noticed")
            chain.send("statistics", *(of_day(0, number) for number in range(1, 5)), key="vm-1")
            poll_until(lambda: waits("full"), "it waits")
            assert running.running()
            assert not chain.settled()
            roomy = dict.fromkeys(full, "99.9%")
            with cluster_setting(chain, **roomy):
                poll_until(chain.settled, "it goes on by itself")
    assert by_day(chain) == {0: 10}
    assert chain.records("events.rejected") == []


def _is_flooded(chain: Chain) -> bool:
    found = chain.elasticsearch.indices.get_settings(index=f"{index_of('statistics', chain.generation)}.*").body
    return any("read_only_allow_delete" in orjson.dumps(one).decode() for one in found.values())


def test_an_index_of_a_former_version_in_the_way_is_named(chain: Chain):
    chain.elasticsearch.indices.create(index=index_of("novelties", chain.generation))
    with pytest.raises(Exception, match=r"former version.*generation"), chain.indexer() as running:
        poll_until(running.done, "it has ended")
