"""`kappa infra` runs the embedded servers; `kappa topics` compares the map of topics with a broker."""

import json
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from connectors.kafka.admin import TopicState, compare, connect, widen
from connectors.kafka.admin import apply as apply_topics
from infra.contract.topics import LIVE, Topic, TopicMap, format_duration, load_topics
from infra.errors import UserError
from infra.jars import PARTS
from infra.jars import fetch as fetch_part
from infra.local import LocalServers
from infra.local.identities import ADMIN
from infra.processes import STOPPING
from infra.settings import load_settings
from jobs.table import JOBS

app = typer.Typer(help="Embedded Kafka and Elasticsearch: real servers, no containers.", no_args_is_help=True)
topics_app = typer.Typer(help="List the map of topics, compare it with a broker, create topics.", no_args_is_help=True)
# A table in a pipe is not wrapped.
console = Console(width=None if sys.stdout.isatty() else 200)
errors = Console(stderr=True)

KafkaPort = Annotated[int | None, typer.Option(help="Kafka's first port; a node takes 2, secured 3. [9092]")]
ElasticsearchPort = Annotated[int | None, typer.Option(help="Elasticsearch's HTTP port; it takes the next too. [9200]")]
Brokers = Annotated[int | None, typer.Option(help="Kafka brokers; 3 survive the loss of one. [1]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Bootstrap = Annotated[str, typer.Option(envvar="KAPPA_KAFKA_BOOTSTRAP", help="Kafka's addresses.")]
Map = Annotated[Path | None, typer.Option("--map", envvar="KAPPA_TOPICS_FILE", help="Another topics.yaml.")]
Generation = Annotated[str, typer.Option(envvar="KAPPA_GENERATION", help="Whose topics.")]

COLOURS = {
    "ready": "green",
    "same": "green",
    "created": "cyan",
    "applied": "cyan",
    "starting": "yellow",
    "differs": "red",
    "missing": "yellow",
}


@app.command()
def fetch() -> None:
    """Download the jars of Spark, Kafka and Elasticsearch, unless they are here already.

    Example: kappa infra fetch
    """
    with _terminable(), _progress() as report:
        for part in PARTS:
            report(part, "fetching")
            fetch_part(part)
            report(part, "ready")


@app.command()
def up(
    kafka_port: KafkaPort = None,
    elasticsearch_port: ElasticsearchPort = None,
    brokers: Brokers = None,
    secured: Annotated[
        bool | None, typer.Option("--secured", help="With TLS, passwords and rights. A home stays what it is.")
    ] = None,
) -> None:
    """Start the servers that don't run, wait until they are ready, and print the settings with their addresses.

    Secured ones also print whose settings are in which folder: name it by KAPPA_SECRETS.

    Example: kappa infra up --brokers 3 --kafka-port 9192
    """
    servers = _servers(kafka_port=kafka_port, elasticsearch_port=elasticsearch_port, brokers=brokers, secured=secured)
    with _terminable(), _progress() as report:
        servers.up(report)
    settings = {"KAPPA_KAFKA_BOOTSTRAP": servers.bootstrap, "KAPPA_ELASTICSEARCH_URL": servers.elasticsearch_url}
    if servers.identities:
        settings["KAPPA_SECRETS"] = str(servers.identities.user(ADMIN))
    for name, value in settings.items():
        console.print(f"export {name}={value}", highlight=False, soft_wrap=True)


@app.command()
def down(wipe: Annotated[bool, typer.Option(help="Delete the servers' data too.")] = False) -> None:
    """Stop the servers of this KAPPA_HOME.

    Example: kappa infra down --wipe
    """
    _servers().down(wipe=wipe)


@app.command()
def status(as_json: Json = False) -> None:
    """Show each server: state, address, process, log. Exits with 1 if one is not ready.

    Example: kappa infra status --json
    """
    rows = _servers().status()
    _show(rows, ["name", "state", "address", "pid", "log"], as_json)
    raise typer.Exit(any(row["state"] != "ready" for row in rows))


@app.command()
def logs(
    server: Annotated[str, typer.Argument(help="A name that `status` shows, e.g. kafka-1.")],
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many of the last lines.")] = 50,
) -> None:
    """Print the end of a server's log.

    Example: kappa infra logs elasticsearch -n 100
    """
    known = {str(row["name"]): Path(str(row["log"])) for row in _servers().status()}
    if server not in known:
        raise UserError(f"server {server!r} is unknown; there are {', '.join(known)}")
    if not known[server].is_file():
        raise UserError(f"server {server!r} has no log yet; start it by `kappa infra up`")
    with known[server].open(errors="replace") as log:
        console.print("".join(deque(log, maxlen=lines)), end="", markup=False, highlight=False, soft_wrap=True)


@topics_app.command()
def apply(
    bootstrap: Bootstrap = "127.0.0.1:9092", generation: Generation = LIVE, path: Map = None, as_json: Json = False
) -> None:
    """Create the topics that are missing, and apply what loses nothing: longer retention, larger records, quotas.

    What differs otherwise is shown, with the command that would change it. A retention that is shorter in the map than
    on the broker deletes records, so a person runs that; it is no error. For any other difference the exit code is 1.

    Example: kappa topics apply --generation v2
    """
    declared = load_topics(path)
    JOBS.check(declared)
    topics = _of_generation(declared, generation, bootstrap)
    admin = connect(bootstrap)
    states = widen(admin, apply_topics(admin, topics))
    if generation == LIVE and declared.quotas:
        states += _apply_quotas(bootstrap, declared)
    _show_states(states, as_json)
    for command in _commands(states, bootstrap):
        errors.print(command, soft_wrap=True, highlight=False)
    raise typer.Exit(any(state.differences.keys() - {"retention.ms"} for state in states))


def _of_generation(declared: TopicMap, generation: str, bootstrap: str) -> TopicMap:
    """The topics of a generation: one that is planned may have more partitions than are declared, or a part of them."""
    if generation == LIVE:
        return JOBS.topics_in(declared, LIVE)
    from ops.replay.registry import Registry  # with Spark, which takes a second to load

    return Registry.read(bootstrap).topics(generation, declared)


def _commands(states: Iterable[TopicState], bootstrap: str) -> Iterator[str]:
    """What would shorten the retention of topics that the broker keeps for longer than the map says."""
    for state in states:
        if "retention.ms" in state.differences:
            declared, actual = state.differences["retention.ms"]
            yield (
                f"{state.name}: the broker keeps it for {actual} ms, the map says {declared}: not changed, as that "
                f"would delete records. To do it: kafka-configs --bootstrap-server {bootstrap} --alter "
                f"--entity-type topics --entity-name {state.name} --add-config retention.ms={declared}"
            )


def _apply_quotas(bootstrap: str, declared: TopicMap) -> list[TopicState]:
    # Spark's jars, for a client in Java: no other command here needs them.
    from connectors.kafka.quotas import apply_quotas
    from jobs.runtime.settings import load_settings as load_runtime_settings

    prefix = load_runtime_settings().principal_prefix
    quotas = {f"{prefix}{user}": quota for user, quota in declared.quotas.items()}
    before = apply_quotas(bootstrap, quotas)
    same = {user for user, quota in quotas.items() if before[user] == quota.in_kafkas_names()}
    return [TopicState(f"quota of {user}", "same" if user in same else "applied") for user in quotas]


@topics_app.command("list")
def list_topics(generation: Generation = LIVE, path: Map = None, as_json: Json = False) -> None:
    """Print the map of topics, without asking a broker.

    Example: kappa topics list --json
    """
    topics = JOBS.topics_in(load_topics(path), generation).topics
    rows = [_declaration(key, topic) for key, topic in topics.items()]
    _show(rows, ["name", "key", "partitions", "retention", "cleanup", "schema", "written_by"], as_json)


@topics_app.command()
def describe(
    name: Annotated[str | None, typer.Argument(help="One topic; otherwise all.")] = None,
    bootstrap: Bootstrap = "127.0.0.1:9092",
    generation: Generation = LIVE,
    path: Map = None,
    as_json: Json = False,
) -> None:
    """Compare the map with the broker: same, differs (and how) or missing.

    Example: kappa topics describe events
    """
    topics = _of_generation(load_topics(path), generation, bootstrap)
    chosen = [topics[name]] if name else list(topics)
    _show_states(compare(connect(bootstrap), chosen), as_json)


@topics_app.command()
def schema(name: Annotated[str, typer.Argument(help="A topic, e.g. novelties.")], path: Map = None) -> None:
    """Print the JSON Schema of a topic's records.

    Example: kappa topics schema novelties
    """
    # Spark's types take a second to load, and no other command here needs them.
    from infra.contract.json_schema import json_schema
    from infra.contract.schemas import SCHEMAS

    record = load_topics(path)[name].schema_name
    if record is None:
        raise UserError(f"topic {name!r} has no schema: its writers choose the format")
    console.print_json(data=json_schema(record, SCHEMAS[record]))


def _servers(**flags: int | bool | None) -> LocalServers:
    given = {key: value for key, value in flags.items() if value is not None}
    return LocalServers.of(load_settings(**given))


@contextmanager
def _terminable() -> Iterator[None]:
    """End the program on SIGTERM and SIGHUP as on SIGINT, with its clean-up; further signals don't interrupt that."""

    def leave(number: int, _frame: FrameType | None) -> None:
        for each in previous:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    previous = {number: signal.signal(number, leave) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _progress() -> Iterator[Callable[[str, str], None]]:
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.fields[server]:14}"),
        TextColumn("{task.description}"),
    )
    tasks: dict[str, Any] = {}
    with Progress(*columns, TimeElapsedColumn(), console=errors) as progress:

        def report(server: str, state: str) -> None:
            if server not in tasks:
                tasks[server] = progress.add_task(state, server=server, total=1)
            progress.update(tasks[server], description=state, completed=state == "ready")

        yield report


def _declaration(key: str, topic: Topic) -> dict[str, object]:
    fields = topic.model_dump(by_alias=True, exclude_none=True)
    durations: dict[str, object] = {
        key: format_duration(fields[key]) for key in ("retention", "archive_retention", "future") if key in fields
    }
    if topic.lateness:
        durations["lateness"] = str(topic.lateness)
    return {**fields, **durations, "written_by": list(topic.written_by) or list(JOBS.writers(key))}


def _show_states(states: list[TopicState], as_json: bool) -> None:
    rows = [asdict(state) for state in states]
    if not as_json:
        for row in rows:
            row["differences"] = ", ".join(f"{k}: map {d}, broker {a}" for k, (d, a) in row["differences"].items())
    _show(rows, ["name", "state", "differences"], as_json)


def _show(rows: list[dict[str, Any]], columns: list[str], as_json: bool) -> None:
    if as_json:
        console.print_json(json.dumps(rows))
        return
    table = Table(*columns, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    console.print(table)


def _cell(value: object) -> str:
    text = ", ".join(value) if isinstance(value, list) else "" if value is None else str(value)
    colour = COLOURS.get(text)
    return f"[{colour}]{text}[/]" if colour else text
