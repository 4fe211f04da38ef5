import pyarrow as pa
import pytest
from deltalake import write_deltalake

SECOND = 1_000_000_000
BEGAN = 1_790_000_000 * SECOND
SERIES = "system.cpu.utilization{state=user}"


def novelty(number, machine, verdict, score, phase="start"):
    about = {"id": f"n{number}", "phase": phase, "verdict": verdict, "machine": machine, "score": score}
    return about | {"statistic": "level", "time_unix_nano": BEGAN + 60 * SECOND, "since_unix_nano": BEGAN}


def window(machine, number, **series):
    end = BEGAN + 10 * SECOND * (number + 1)
    count = len(series)
    columns = {
        "series": list(series),
        "name": [name.partition("{")[0] for name in series],
        "kind": ["metric"] * count,
        "unit": ["1"] * count,
        "count": [2] * count,
        **{name: list(series.values()) for name in ("sum", "mean", "min", "max", "p50", "p95", "p99")},
    }
    facts = {"site": "site-1", "hypervisor": "hv-01", "tenant": None, "role": "UPF"}
    return {
        "machine": machine,
        "inventory": facts,
        "window": {"kind": "tumbling", "size_seconds": 10.0, "end_unix_nano": end},
        "statistics": columns,
    }


TABLES = {
    "novelties": [
        novelty(1, "vm-17", "anomaly", 17.5),
        novelty(1, "vm-17", "anomaly", 2.0, "end"),
        novelty(2, "vm-20", "silence", 6.5),
    ],
    "statistics": [window("vm-17", number, **{SERIES: 0.1 * number, "mem": 5.0}) for number in range(4)],
    "events.rejected": [{"stage": "enrichment", "code": "not_json", "reason": "=HYPERLINK()", "events": 3}],
}
FIELDS = {"events.rejected": [pa.field("timestamp", pa.timestamp("us", "UTC"))], "statistics": [], "novelties": []}


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A KAPPA_HOME with tables of the live generation."""
    home = tmp_path_factory.mktemp("home")
    for name, rows in TABLES.items():
        table = pa.Table.from_pylist(rows)
        for field in FIELDS[name]:
            table = table.append_column(field, pa.nulls(len(rows), field.type))
        write_deltalake(str(home / "delta" / "live" / name), _without_nulls(table))
    return home


def _without_nulls(table):
    """Of a column of which nothing is known the type isn't either: text."""
    return table.cast(pa.schema([pa.field(one.name, _typed(one.type)) for one in table.schema]))


def _typed(kind):
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _typed(one.type)) for one in kind])
    return kind
