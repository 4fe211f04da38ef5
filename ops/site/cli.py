"""`kappa site`: several sites, each with its own Kafka and chain, and a centre that sees them all."""

import json
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from infra.contract.topics import Topic, TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.logs import configure_logs
from jobs.runtime.settings import load_storage_settings
from ops.savepoints import savepoints
from ops.savepoints.saved import ChainSavepoint
from ops.site.centre_map import centre_map
from ops.site.failover import failover
from ops.site.mirror import Mirror, check_site, everything, findings, mirrored, properties, strimzi
from ops.units import seconds_of

app = typer.Typer(no_args_is_help=True)
errors = Console(stderr=True)
Whole = Annotated[bool, typer.Option("--all", help="What jobs have written, too: to move a whole chain.")]
Edge = Annotated[bool, typer.Option("--edge", help="Instead, what the site's jobs have found: to store and show it.")]
Map = Annotated[Path | None, typer.Option("--map", envvar="KAPPA_TOPICS_FILE", help="Another topics.yaml.")]


class Form(StrEnum):
    """What `kappa site mirror` prints."""

    PROPERTIES = "properties"
    STRIMZI = "strimzi"


@app.callback()
def _group() -> None:
    """Several sites, each with its own Kafka and chain, and a centre that sees them all."""


@app.command()
def mirror(
    site: Annotated[str, typer.Argument(help="The site's name, e.g. dc1.")],
    *,
    source: Annotated[str, typer.Option("--from", help="Addresses of the site's brokers.")],
    target: Annotated[str, typer.Option("--to", help="Addresses of the centre's brokers.")],
    form: Annotated[Form, typer.Option("--as", help="For connect-mirror-maker.sh, or Strimzi.")] = Form.PROPERTIES,
    tasks: Annotated[int, typer.Option(min=1, help="That share the partitions.")] = 4,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of its workers, on the loopback.")] = 8083,
    whole: Whole = False,
    edge: Edge = False,
    path: Map = None,
) -> None:
    """Print what MirrorMaker 2 must be told to bring a site's telemetry, inventory and control events to a centre.

    Each record comes to the centre once, in the same partition and with the time at which the site's broker got it.

    Example: kappa site mirror dc1 --from kafka.dc1:9092 --to kafka.centre:9092 > dc1.properties
    """
    topics, wanted = _chosen(whole, edge)(load_topics(path)), Mirror(site, source, target, tasks)
    typer.echo(properties(wanted, topics, port) if form is Form.PROPERTIES else strimzi(wanted, topics), nl=False)


@app.command("topics")
def topics_of_the_centre(*, whole: Whole = False, edge: Edge = False, path: Map = None) -> None:
    """Print the topics.yaml of a centre: mirrored records keep the time at which the site's broker got them.

    Example: kappa site topics > centre.yaml; KAPPA_TOPICS_FILE=centre.yaml kappa topics apply
    """
    typer.echo(centre_map(path, _chosen(whole, edge)), nl=False)


@app.command("failover")
def move_here(
    name: Annotated[str, typer.Argument(help="A savepoint of all jobs, taken there after they had stopped.")],
    *,
    source: Annotated[str, typer.Option("--from", help="Addresses of the former centre's brokers.")],
    back: Annotated[str, typer.Option(help="The name of a mirror that may lead back afterwards.")],
    without: Annotated[
        list[str] | None, typer.Option(help="A consumer group that isn't carried over. May be repeated.")
    ] = None,
    patience: Annotated[str, typer.Option(help="How long the mirror is waited for.")] = "15m",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Go on at this cluster, to which a mirror brings everything of the former centre, and which its jobs have left.

    Jobs, readers and the sites' mirrors go on at their places, each behind the record that it had read last. Nothing
    is changed before the mirror has brought everything.

    Example: kappa site failover move --from kafka.east:9092 --back west
    """
    check_site(back)
    settings = load_storage_settings()
    configure_logs(settings)
    saved = savepoints.read(name, settings)
    if not isinstance(saved, ChainSavepoint):
        raise UserError(f"savepoint {name!r}: is of {saved.job} alone; take one of all: kappa savepoint create --all")
    with errors.status("comparing both clusters") as status:
        done = failover(
            saved,
            source,
            back,
            settings,
            without=without or (),
            patience=seconds_of(patience, "--patience"),
            tell=lambda left: status.update(f"{left} partitions have not come in full"),
        )
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    errors.print(f"{', '.join(done.jobs)} of {saved.generation} go on from {name}", highlight=False)
    errors.print(f"readers: {', '.join(done.readers) or 'none'}; mirrors: {', '.join(done.mirrors) or 'none'}")
    errors.print(
        f"now end the mirror that led here, then start the jobs, the sites' mirrors, and {back} if you want it"
    )


def _chosen(whole: bool, edge: bool) -> Callable[[TopicMap], list[Topic]]:
    if whole and edge:
        raise UserError("--edge: is a part of what --all mirrors; give one of the two")
    if edge:
        return findings
    return everything if whole else mirrored
