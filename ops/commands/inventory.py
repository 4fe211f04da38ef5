"""`kappa inventory`: writes the facts of machines to the `inventory` topic and shows them."""

import csv
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from connectors.kafka.access import partitions_of, reach
from connectors.kafka.producer import CollectorProducer
from infra.contract.inventory import DEPENDS_ON, FACTS
from infra.errors import UserError
from infra.settings import describe
from jobs.enrichment.inventory import Fact, newest_first, read_facts
from jobs.runtime.settings import load_settings
from ops.commands.detector import By
from ops.inventory import Entry
from ops.inventory import retire as retire_machine
from ops.launcher import topics_of
from ops.os_user import author

app = typer.Typer(help="Load and show the facts of machines: site, role and so on.", no_args_is_help=True)
console = Console()

Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]


@app.command()
def load(
    file: Annotated[Path, typer.Argument(help="CSV with a header, or a JSON array of objects.")],
    bootstrap: Bootstrap = None,
) -> None:
    """Write the machines of a file to the inventory; earlier facts stay valid for the time before `valid_from`.

    Columns: machine, type (physical or virtual), site, hypervisor, tenant, role, workload, depends_on (names of
    machines, workloads, or roles of the same tenant, parted by semicolons; in JSON a list), valid_from, valid_to
    (ISO 8601; without valid_from: from the beginning). The whole file is checked before anything is written.

    Example: kappa inventory load machines.csv
    """
    settings = load_settings(kafka_bootstrap=bootstrap)
    entries = [_entry(file, number, row) for number, row in enumerate(_rows(file), 1)]
    topic = topics_of(settings)["inventory"].name
    producer = CollectorProducer(settings.kafka_bootstrap, [topic])
    now = int(datetime.now(UTC).timestamp() * 1000)
    for entry in entries:
        producer.send(topic, entry.key(), orjson.dumps(entry.record()), now)
    producer.flush()
    console.print(f"{len(entries)} machines written to {topic}")


@app.command()
def retire(
    machine: Annotated[str, typer.Argument(help="The machine's host.name.")],
    at: Annotated[datetime | None, typer.Option(help="When it goes, ISO 8601. [now]")] = None,
    by: By = "",
    bootstrap: Bootstrap = None,
) -> None:
    """Say that a machine goes, or has gone: it is alerted once as `gone`, not as silent, and forgotten.

    Its facts stay valid for the time before. Should it send again later, it is new and was seen before.

    Example: kappa inventory retire vm-17
    """
    settings = load_settings(kafka_bootstrap=bootstrap)
    time = at or datetime.now(UTC)
    retire_machine(settings.kafka_bootstrap, topics_of(settings), machine, time, by or author())
    console.print(f"{machine}: retired at {time:%Y-%m-%d %H:%M:%S %Z}".rstrip())


@app.command()
def show(
    machine: Annotated[str, typer.Argument(help="The machine's host.name.")],
    bootstrap: Bootstrap = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a machine's facts and their history, newest first.

    Example: kappa inventory show vm-17
    """
    settings = load_settings(kafka_bootstrap=bootstrap)
    topic = topics_of(settings)["inventory"].name
    partitions_of(reach(settings.kafka_bootstrap), [topic])  # says so where a right is missing
    facts = read_facts(settings.kafka_bootstrap, topic).get(machine)
    if not facts:
        raise UserError(f"machine {machine!r}: not in the inventory; add it with `kappa inventory load FILE`")
    found = _history(facts)
    if as_json:
        typer.echo(json.dumps(found))
        return
    table = Table("valid from", "valid to", *FACTS, DEPENDS_ON)
    for fact in found:
        needed = ", ".join(fact[DEPENDS_ON] or ())
        table.add_row(_text(fact["valid_from"]), _text(fact["valid_to"]), *(fact[n] or "" for n in FACTS), needed)
    console.print(table)


def _history(facts: Sequence[Fact]) -> list[Fact]:
    """What was said of one machine, newest first: each fact ends where the next one begins, or at its own earlier end.

    One that was corrected ends where it begins. `facts` are in the order of their coming.
    """
    found = newest_first(facts)
    ends = [None, *(fact["valid_from"] for fact in found[:-1])]
    return [
        {**fact, "valid_to": min((one for one in (fact["valid_to"], end) if one is not None), default=None)}
        for fact, end in zip(found, ends, strict=True)
    ]


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text()
        rows = json.loads(text) if file.suffix == ".json" else list(csv.DictReader(text.splitlines()))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: can't be read: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{file}: must be a JSON array of objects, or CSV with a header")
    for row in rows:
        yield {name: value for name, value in row.items() if value not in ("", None)}


def _entry(file: Path, number: int, row: dict[str, Any]) -> Entry:
    try:
        return Entry.model_validate(row)
    except ValidationError as error:
        raise UserError(f"{file}, row {number}: {describe(error)}") from None


def _text(nanos: int | None) -> str:
    return datetime.fromtimestamp(nanos / 1e9, UTC).isoformat() if nanos else "-"
