"""One hour of event time through the statistics fold as fast as it goes: does its state stay flat?

python -m tests.bench.soak --events-per-second 20000 --minutes 60
"""

import argparse
import time
from functools import cache
from pathlib import Path

import orjson
import psutil

from infra.contract.columnar import event_columns
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input
from jobs.statistics.settings import load_windows
from jobs.statistics.shard import Shard
from jobs.statistics.state import State

NANO = 1_000_000_000
START = 1_800_000_000 * NANO
INTERVAL, BATCH = 5, 30  # seconds between two scrapes of a machine; seconds of event time in a batch
DELAY = 25 * NANO  # of the watermarks
GAUGES, COUNTERS = 24, 8


@cache
def template(machine: str) -> list[bytes]:
    """A machine's record, cut where the time and the scrape's number belong."""
    events = [_event(f"gauge.{n}", {"core": str(n)}, "gauge") for n in range(GAUGES)]
    events += [_event(f"counter.{n}", {"device": str(n)}, "sum") for n in range(COUNTERS)]
    record = {
        "id": "telemetry.otlp.metrics-0-1-0",
        "machine": machine,
        "kind": "metric",
        "inventory": {"known": True, "type": "virtual", "site": "site-1", "role": "AMF"},
        "events": event_columns(events),
    }
    return orjson.dumps(record).replace(b'"@time@"', b"\0").replace(b'"@step@"', b"\1").split(b"\0")


def _event(name: str, attributes: dict[str, str], kind: str) -> dict[str, object]:
    labels = ",".join(f"{key}={value}" for key, value in attributes.items())
    facts = {"time_unix_nano": "@time@", "series": f"{name}{{{labels}}}", "name": name, "value": "@step@", "unit": "1"}
    more = {"temporality": "cumulative", "monotonic": True} if kind == "sum" else {}
    return {**facts, "type": kind, **more, "attributes": attributes}


def batch(second: int, machines: int) -> list[bytes]:
    """The records of `BATCH` seconds, then a watermark."""
    records = []
    for scrape in range(second, second + BATCH, INTERVAL):
        for number in range(machines):
            at = b"%d" % (START + scrape * NANO + number * INTERVAL * NANO // machines)
            whole = at.join(template(f"vm-{number}"))
            records.append(whole.replace(b"\1", b"%d" % (scrape * (number + 1))))
    return [*records, orjson.dumps({"watermark_unix_nano": START + (second + BATCH) * NANO - DELAY})]


def main() -> None:
    """Print the state and the memory every five minutes of event time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events-per-second", type=int, default=20_000)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--shards", type=int, default=4, help="of which one is folded; they are alike")
    parser.add_argument("--json", type=Path, default=Path("build/soak.json"))
    given = parser.parse_args()
    machines = given.events_per_second * INTERVAL // (GAUGES + COUNTERS) // given.shards
    shard, spent, rows, offset = Shard(load_windows()), 0.0, [], 0
    for second in range(0, given.minutes * 60, BATCH):
        values = batch(second, machines)
        began = time.process_time()
        shard.feed(Input("events", 0, range(offset, offset + len(values)), values))
        state = shard.dump()
        spent += time.process_time() - began
        offset += len(values)
        if (second + BATCH) % 300 == 0:
            events = (offset - (second + BATCH) // BATCH) * (GAUGES + COUNTERS)
            rows.append({"minute": (second + BATCH) // 60, "events": events, "cpu_s": round(spent, 1), **_look(state)})
            print(rows[-1], flush=True)
    given.json.parent.mkdir(exist_ok=True)
    given.json.write_bytes(orjson.dumps({"shards": given.shards, "rows": rows}, option=orjson.OPT_INDENT_2))


def _look(state: Parts) -> dict[str, float]:
    kept = State(load_windows(), state)
    return {
        "series": len(kept.catalogue),
        "pane_rows": sum(len(pane.rows) for panes in kept.panes.kept.values() for pane in panes),
        "points": sum(map(len, kept.points.values())),
        "state_mb": round(sum(map(len, state.values())) / 1e6, 2),
        "rss_mb": round(psutil.Process().memory_info().rss / 1e6),
    }


if __name__ == "__main__":
    main()
