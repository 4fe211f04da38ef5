"""`kappa notifier`: checks a file of routes, shows what would be sent, and sends a test."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import orjson
import typer
from confluent_kafka import KafkaException

from connectors.kafka.reader import read_topic, value_of
from infra.contract.dead_letters import InvalidRecordError, Source
from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.notifier.channels.channel import DeliveryError
from jobs.notifier.deliveries import Deliveries
from jobs.notifier.delivery import Delivery
from jobs.notifier.example import EXAMPLE, example_places
from jobs.notifier.intake import Whereabouts
from jobs.notifier.notice import Notice, Topic, read_notice
from jobs.notifier.routes import Route, Routing, load_routing
from jobs.runtime.settings import Settings, load_settings
from ops.launcher import topics_of

app = typer.Typer(help="Check a file of routes, see what it sends, send a test.", no_args_is_help=True)
TAIL = 200  # offsets of the topic among which the latest incident is looked for
TOPIC: Topic = "incidents"

File = Annotated[Path, typer.Argument(metavar="FILE", help="A file of routes, as KAPPA_NOTIFIER_ROUTES names it.")]
Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]
Example = Annotated[bool, typer.Option("--example", help="Of a made-up incident; Kafka is not asked.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class Preview:
    """Where one route that takes the incident would send it."""

    route: str
    channels: tuple[str, ...]
    not_before: str | None  # because of quiet hours


@app.command()
def check(file: File, *, example: Example = False, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Check a file of routes, and show what would be sent for the latest incident. Nothing is sent.

    A fault of the file ends with exit code 2. Secrets that this environment lacks are only named.

    Example: kappa notifier check my-routes.yaml --example
    """
    routing = load_routing(file)
    notice, source = _notice(routing, load_settings(kafka_bootstrap=bootstrap), example=example)
    previews = [_preview(notice, route) for route in routing.routes_of(notice)]
    delivery = _delivery(routing, notice, source)
    shown = {
        "file": str(file),
        "of": source.topic,
        "severity": notice.severity,
        "title": delivery.content.title if delivery.content else "",
        "text": delivery.content.text if delivery.content else "",
        "routes": [asdict(preview) for preview in previews],
        "missing": list(routing.faults()),
    }
    typer.echo(json.dumps(shown) if as_json else "\n".join(_lines(shown)))


@app.command()
def test(
    file: File,
    *,
    route: Annotated[str | None, typer.Option(help="To the channels of this route.")] = None,
    channel: Annotated[str | None, typer.Option(help="To this channel.")] = None,
    example: Example = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Send the latest incident, marked as a test, now: to the channels of a route, or to one channel.

    Exit code 1 if a channel did not take it.

    Example: kappa notifier test my-routes.yaml --route nights --example
    """
    routing = load_routing(file)
    names = _channels(routing, route, channel)
    if faults := [fault for name in names for fault in routing.channels[name].faults()]:
        raise UserError(faults[0])
    settings = load_settings(kafka_bootstrap=bootstrap)
    notice, source = _notice(routing, settings, example=example)
    outcomes = {name: _send(routing, name, _delivery(routing, notice, source)) for name in names}
    lines = (f"{name}: {reason or 'taken'}" for name, reason in outcomes.items())
    typer.echo(json.dumps(outcomes) if as_json else "\n".join(lines))
    if any(outcomes.values()):
        raise typer.Exit(1)


def _channels(routing: Routing, route: str | None, channel: str | None) -> tuple[str, ...]:
    routes = {one.name: one.channels for one in routing.routes}
    if (route is None) == (channel is None):
        raise UserError("give either --route or --channel")
    if route is not None:
        return _one_of("--route", route, routes)
    return _one_of("--channel", str(channel), {name: (name,) for name in routing.channels})


def _one_of(option: str, name: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if name not in known:
        raise UserError(f"{option} {name!r}: there is none; there are {', '.join(known)}")
    return known[name]


def _send(routing: Routing, channel: str, delivery: Delivery) -> str | None:
    """Why a channel did not take a test; None if it did. Each test has an id of its own, so that it is no repeat."""
    content = delivery.content and replace(delivery.content, title=f"[test] {delivery.content.title}")
    identity = uuid4().hex
    try:
        routing.channels[channel].send(replace(delivery, id=identity, thread=identity, content=content))
    except DeliveryError as error:
        return str(error)
    return None


def _delivery(routing: Routing, notice: Notice, source: Source) -> Delivery:
    """The notice as a delivery, whatever the routes say."""
    return routing.delivery(notice, source, next(iter(routing.channels)), 0, Deliveries())


def _preview(notice: Notice, route: Route) -> Preview:
    time = notice.finding.time_unix_nano
    hold = route.hold_until(time)
    held = f"{datetime.fromtimestamp(hold // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC" if hold > time else None
    return Preview(route.name, route.channels, held)


def _notice(routing: Routing, settings: Settings, *, example: bool) -> tuple[Notice, Source]:
    """The latest incident, or the made-up one if there is none."""
    latest = None if example else _latest(routing, settings, topics_of(settings))
    if latest:
        return latest
    notice = read_notice(TOPIC, orjson.dumps(EXAMPLE), example_places, routing.critical_machines)
    return notice, Source("example", 0, 0, 0)


def _latest(routing: Routing, settings: Settings, topics: TopicMap) -> tuple[Notice, Source] | None:
    topic = topics[TOPIC].name
    try:
        values = [value_of(message) or b"" for message in read_topic(settings.kafka_bootstrap, topic, TAIL)]
        whereabouts = _whereabouts(settings, topics) if values else example_places
    except KafkaException as error:
        raise UserError(
            f"KAPPA_KAFKA_BOOTSTRAP={settings.kafka_bootstrap}: no Kafka broker answers; correct it, or say --example"
        ) from error
    found: list[Notice] = []
    for value in values:
        with suppress(InvalidRecordError):  # the notifier makes a dead letter of it
            found.append(read_notice(TOPIC, value, whereabouts, routing.critical_machines))
    newest = max(found, key=lambda notice: notice.finding.time_unix_nano, default=None)
    return (newest, Source(topic, 0, 0, 0)) if newest else None


def _whereabouts(settings: Settings, topics: TopicMap) -> Whereabouts:
    whereabouts = Whereabouts(settings.kafka_bootstrap, topics["novelties"].name)
    try:
        whereabouts.catch_up()
    finally:
        whereabouts.close()
    return whereabouts


def _lines(shown: dict[str, Any]) -> Iterable[str]:
    yield f"{shown['file']}: right. Of {shown['of']}, which is {shown['severity']}:"
    yield ""
    yield shown["title"]
    yield shown["text"]
    yield ""
    for route in shown["routes"]:
        held = f", not before {route['not_before']}" if route["not_before"] else ""
        yield f"route {route['route']}: to {', '.join(route['channels'])}{held}"
    if not shown["routes"]:
        yield "no route takes it: nothing would be sent"
    for fault in shown["missing"]:
        yield f"not ready here: {fault}"
