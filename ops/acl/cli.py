"""`kappa acl`: the rights that each job and person needs in Kafka and Elasticsearch: prints and applies them."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from connectors.kafka.access import reach
from connectors.kafka.security import load_security
from connectors.sinks.elasticsearch import connect
from infra.contract.topics import LIVE, load_topics
from jobs.runtime.settings import Settings, load_settings
from jobs.table import JOBS
from ops.acl import broker, elasticsearch
from ops.acl.broker import Difference
from ops.acl.principals import Generation, Rights, by_resource, principals
from ops.acl.render import commands, strimzi
from ops.replay.registry import Registry

app = typer.Typer(help="The rights that each job and person needs.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 200)


class Form(StrEnum):
    """What `kappa acl print` prints."""

    COMMANDS = "commands"
    STRIMZI = "strimzi"
    JSON = "json"
    ELASTICSEARCH = "elasticsearch"


Generations = Annotated[list[str], typer.Option("--generation", help="Of these generations; may be repeated.")]
Trial = Annotated[bool, typer.Option("--trial", help="Also for `kappa simulate`.")]
Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("print")
def print_rights(
    form: Annotated[
        Form, typer.Option("--as", help="For Kafka's tools, Strimzi's operator, a program; or Elasticsearch's roles.")
    ],
    generation: Generations = [LIVE],  # noqa: B006
    trial: Trial = False,
    cluster: Annotated[str, typer.Option(help="Name of Strimzi's Kafka.")] = "kafka",
) -> None:
    """Print the rights of every principal, without asking a broker. Other generations than `live` run the whole chain.

    Example: kappa acl print --as strimzi --cluster telemetry | kubectl apply -f -
    """
    settings = load_settings()
    found = _needed(settings, _unplanned(settings, generation), trial=trial)
    if form is Form.ELASTICSEARCH:
        typer.echo(elasticsearch.as_json(_roles(settings), settings.principal_prefix))
    elif form is Form.STRIMZI:
        quotas = load_topics(settings.topics_file).quotas
        typer.echo(strimzi(found, quotas, settings.principal_prefix, cluster), nl=False)
    elif form is Form.COMMANDS:
        typer.echo("\n".join(commands(found, settings.principal_prefix, settings.kafka_bootstrap)))
    else:
        typer.echo(json.dumps(_as_json(found, settings), indent=1))


@app.command()
def describe(kafka_bootstrap: Bootstrap = None, trial: Trial = False, as_json: Json = False) -> None:
    """Compare with the rights that the broker has; of every generation there is. Exits with 1 if they differ.

    Example: kappa acl describe
    """
    settings = load_settings(kafka_bootstrap=kafka_bootstrap)
    admin = reach(settings.kafka_bootstrap)
    found = broker.compare(admin, _of_broker(settings, trial=trial), settings.principal_prefix)
    _show(found, as_json=as_json)
    raise typer.Exit(bool(found))


@app.command()
def apply(
    kafka_bootstrap: Bootstrap = None,
    trial: Trial = False,
    prune: Annotated[bool, typer.Option(help="Take away what is needed no more; else it is shown.")] = False,
    users: Annotated[
        Path | None,
        typer.Option(help="Also make the users, with a folder for KAPPA_SECRETS each in here (KAPPA_IDENTITIES)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Give each principal on the broker what it needs in every generation there is. Exits with 1 if some have more.

    Whoever runs it must be allowed to alter the cluster: Kafka's own administrator.

    Example: kappa acl apply --users .kappa/security/users
    """
    settings = load_settings(kafka_bootstrap=kafka_bootstrap)
    admin, prefix = reach(settings.kafka_bootstrap), settings.principal_prefix
    needed = _of_broker(settings, trial=trial)
    if users:
        broker.make_users(admin, [f"{prefix}{name}" for name in needed], users, load_security())
    found = broker.compare(admin, needed, prefix)
    broker.create(admin, found)
    if prune:
        broker.delete(admin, found)
    _show(found, as_json=as_json)
    raise typer.Exit(not prune and any(one.superfluous for one in found))


@app.command()
def keys(
    users: Annotated[Path, typer.Argument(help="The folder of users (KAPPA_IDENTITIES).")],
    expires: Annotated[str | None, typer.Option(help="After so long, such as 90d. [never]")] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the former keys.")] = False,
) -> None:
    """Make an API key of Elasticsearch for each user that needs one, and put the templates of the indices.

    Whoever still has a former key that was revoked waits until it has read the new one.

    Example: kappa acl keys .kappa/security/users --expires 90d
    """
    settings = load_settings()
    client = connect(settings.elasticsearch_url, settings.elasticsearch_identity())
    elasticsearch.put_templates(client, load_topics(settings.topics_file))
    made = list(elasticsearch.make_keys(client, _roles(settings), settings, users, expires))
    for name, identity in made:
        console.print(f"{name}: key {identity}", highlight=False)
    if revoke:
        console.print(f"{elasticsearch.revoke_former(client, made)} former keys revoked", highlight=False)


def _roles(settings: Settings) -> elasticsearch.Roles:
    return elasticsearch.roles(load_topics(settings.topics_file), small=settings.profile == "small")


def _needed(
    settings: Settings, generations: dict[str, Generation], *, trial: bool, restored: dict[str, list[str]] | None = None
) -> Rights:
    return principals(generations, restored=restored or {}, small=settings.profile == "small", trial=trial)


def _unplanned(settings: Settings, names: list[str]) -> dict[str, Generation]:
    declared, jobs = load_topics(settings.topics_file), JOBS.enabled(settings.optional_jobs)
    JOBS.check(declared)
    return {name: (jobs, JOBS.topics_in(declared, name)) for name in names}


def _of_broker(settings: Settings, *, trial: bool) -> Rights:
    """Of the live generation and of all that the broker knows as planned."""
    declared, registry = load_topics(settings.topics_file), Registry.read(settings.kafka_bootstrap)
    planned = {name: (registry.jobs(name), registry.topics(name, declared)) for name in registry.names if name != LIVE}
    restored = {
        name: [f"{topic.name}.{name}" for topic in JOBS[jobs[0]].inputs(topics)]
        for name, (jobs, topics) in planned.items()
        if registry.find(name).source == "delta"
    }
    return _needed(settings, {**_unplanned(settings, [LIVE]), **planned}, trial=trial, restored=restored)


def _as_json(rights: Rights, settings: Settings) -> dict[str, list[dict[str, object]]]:
    return {
        f"{settings.principal_prefix}{principal}": [
            {"kind": kind, "name": name, "is_prefix": is_prefix, "operations": operations}
            for (kind, name, is_prefix), operations in by_resource(own).items()
        ]
        for principal, own in rights.items()
    }


def _show(differences: list[Difference], *, as_json: bool) -> None:
    rows = [
        {"principal": one.principal, "state": state, "right": str(right)}
        for one in differences
        for state, rights in (("missing", one.missing), ("superfluous", one.superfluous))
        for right in sorted(rights)
    ]
    if as_json:
        console.print_json(json.dumps(rows))
        return
    table = Table("principal", "state", "right", box=None, header_style="bold")
    for row in rows:
        table.add_row(*row.values())
    console.print(table if rows else "the same")
