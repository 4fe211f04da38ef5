"""`make bench-console`: p95 of the console's requests and its memory, over many machines and many documents.

A real Elasticsearch has the documents of a fleet, a real broker its topics; no job runs. The console is a process of
its own that reads everything anew for each request, while open pages listen to its streams.
"""

import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, Any

import orjson
import typer

from connectors.kafka.admin import apply, connect
from connectors.sinks.elasticsearch import Action, ElasticsearchSink
from connectors.sinks.elasticsearch import connect as connect_elasticsearch
from connectors.sinks.elasticsearch_errors import Retry
from infra.contract.indices import Lifecycle, Lifecycles
from infra.contract.topics import load_topics
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.indexer.index_names import index_of
from jobs.indexer.indices import Indices
from tests.chaos.processes import Job
from tests.console.house import memory_mb
from tests.integration.conftest import free_ports
from tests.waiting import until

BATCH = 5_000
SERIES = tuple(f"system.metric.{number:02d}" for number in range(31))
ROLES = ("AMF", "SMF", "UPF", "UDM", "HSS", "PCF")
GENERATION = "bench"
HOUR = 3_600_000  # ms
EVER = Lifecycle(period="1d", retention="365d", documents=10_000_000, bytes="50GB")
REQUESTS = 30
MERGE_SECONDS = 600
app = typer.Typer(add_completion=False)


class Fleet:
    """The documents of a fleet in the hour before now; the same seed gives the same ones."""

    def __init__(self, machines: int, seed: int = 1) -> None:
        self.machines, self._random = machines, Random(seed)
        self.end = int(time.time() * 1000) // 60_000 * 60_000

    def place(self, number: int) -> dict[str, str]:
        """What the inventory says of a machine."""
        host = number // 20
        return {"hypervisor": f"hv-{host:04d}", "site": f"site-{host % 8}", "role": ROLES[number % len(ROLES)]}

    def statistics(self, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Windows of a minute, the newest first, of all series of all machines."""
        for at in range(count):
            number, series = divmod(at % (self.machines * len(SERIES)), len(SERIES))
            end, mean = self.end - at // (self.machines * len(SERIES)) * 60_000, self._random.random()
            window = {"kind": "tumbling", "size_seconds": 60.0, "end": end}
            shared = {"@timestamp": end, "machine": f"vm-{number:05d}", "series": SERIES[series], **self.place(number)}
            yield f"s{at}", shared | {"window": window, "kind": "metric", "count": 12, "mean": mean, "min": 0, "max": 1}

    def novelties(self, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Novelties at random times of the hour, one of ten still open."""
        for at in range(count):
            number, started = self._random.randrange(self.machines), self.end - self._random.randrange(HOUR)
            facts = {"machine": f"vm-{number:05d}", "series": self._random.choice(SERIES), **self.place(number)}
            life = {"started": started, "updated": started} | ({"ended": started + 60_000} if at % 10 else {})
            told = {"verdict": "anomaly", "score": 8 + 20 * self._random.random(), "text": "it is odd"}
            yield f"n{at}", {"@timestamp": started, **facts, **life, **told}


@app.command()
def main(
    machines: Annotated[int, typer.Option(help="Each with 31 series.")] = 10_000,
    documents: Annotated[int, typer.Option(help="Of statistics.")] = 10_000_000,
    novelties: Annotated[int, typer.Option(help="Of the last hour.")] = 20_000,
    streams: Annotated[int, typer.Option(help="Open pages.")] = 50,
    report: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/bench-console.json"),
) -> None:
    """Measure; exit with 1 if a p95 is above 200 ms or the memory above 200 MB."""
    port = free_ports(6)
    with tempfile.TemporaryDirectory() as folder:
        servers = LocalServers(
            Path(folder),
            kafka_port=port,
            elasticsearch_port=port + 2,
            jars=default_jars(),
            elasticsearch_heap="1g",
        )
        servers.up()
        try:
            apply(connect(servers.bootstrap), load_topics())
            fleet = Fleet(machines)
            _index(servers.elasticsearch_url, fleet, documents, novelties)
            environment = {
                "KAPPA_KAFKA_BOOTSTRAP": servers.bootstrap,
                "KAPPA_ELASTICSEARCH_URL": servers.elasticsearch_url,
                "KAPPA_METRICS_PORT": "65000",
                "KAPPA_CONSOLE_FRESH_SECONDS": "0",
                "KAPPA_CONSOLE_PATIENCE_SECONDS": "30",
            }
            console = Job("console", ("console", "--port", str(port + 4)), environment, Path(folder) / "console.log")
            facts = _measured(console, f"http://127.0.0.1:{port + 4}", fleet, streams)
        finally:
            servers.down()
    facts = {"machines": machines, "series": len(SERIES), "documents": documents, "streams": streams, **facts}
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    typer.echo(report.read_text())
    raise SystemExit(0 if max(facts["p95_ms"].values()) <= 200 and facts["memory_mb"] <= 200 else 1)


def _index(url: str, fleet: Fleet, documents: int, novelties: int) -> None:
    client, retry = connect_elasticsearch(url), Retry(lambda *_: None)
    found = {"statistics": fleet.statistics(documents), "novelties": fleet.novelties(novelties)}
    kinds = {*found, "incidents", "rejected"}
    indices, sink = (
        Indices(client, retry, Lifecycles(dict.fromkeys(kinds, (EVER,))), GENERATION),
        ElasticsearchSink(client, retry),
    )
    indices.prepare(kinds)
    for kind, every in found.items():
        while some := list(islice(every, BATCH)):
            assert sink.write([Action(indices.places(kind, one)[-1], name, one) for name, one in some]) == {}
    for kind in kinds:
        client.indices.refresh(index=index_of(kind, GENERATION))
        client.indices.put_alias(index=f"{index_of(kind, GENERATION)}.*", name=f"kappa-{kind}")
    # A fleet's documents come in an hour, not in minutes: segments are merged meanwhile.
    until(lambda: not _merges(client), MERGE_SECONDS, "segments are merged", 2)


def _merges(client: Any) -> int:
    return int(client.indices.stats(index="kappa-*", metric="merge")["_all"]["total"]["merges"]["current"])


def _measured(console: Job, address: str, fleet: Fleet, streams: int) -> dict[str, Any]:
    console.start()
    try:
        until(lambda: console.said("console: http"), 60, "the console answers")
        for number in range(streams):
            feeds = ("novelties", "statistics,novelties,control", "clock", "incidents")[number % 4]
            threading.Thread(target=_listen, args=(f"{address}/stream?feeds={feeds}",), daemon=True).start()
        random = Random(2)
        paths = {
            "chain": lambda: "/chain",
            "fleet": lambda: f"/fleet?span=1h&page={random.randint(1, 20)}",
            "fleet by hypervisor": lambda: "/fleet?span=1h&by=hypervisor",
            "fleet of a role": lambda: f"/fleet?span=1h&role={random.choice(ROLES)}&sort=count",
            "machine": lambda: f"/fleet/vm-{random.randrange(fleet.machines):05d}?span=1h",
            "series and its peers": lambda: (
                f"/fleet/vm-{random.randrange(fleet.machines):05d}?span=1h&series={random.choice(SERIES)}"
            ),
            "incidents": lambda: "/incidents",
            "rejected": lambda: "/rejected",
            "control": lambda: "/control",
            "generations": lambda: "/generations",
        }
        for path in paths.values():  # opens connections that stay; Elasticsearch compiles
            urllib.request.urlopen(address + path()).close()
        p95 = {name: round(_p95(lambda path=path: address + path()), 1) for name, path in paths.items()}
        return {"p95_ms": p95, "memory_mb": round(memory_mb(console), 1)}
    finally:
        console.stop()


def _listen(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        for _ in answer:
            pass


def _p95(address: Any) -> float:
    took = []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        with urllib.request.urlopen(address()) as answer:
            answer.read()
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.quantiles(took, n=20)[-1]


if __name__ == "__main__":
    app()
