"""`kappa site`: several sites, each with its own Kafka and chain, and a centre that sees them all."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from infra.contract.topics import Topic, TopicMap, load_topics
from infra.errors import UserError
from ops.site.centre_map import centre_map
from ops.site.mirror import Mirror, everything, findings, mirrored, properties, strimzi

app = typer.Typer(no_args_is_help=True)
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


def _chosen(whole: bool, edge: bool) -> Callable[[TopicMap], list[Topic]]:
    if whole and edge:
        raise UserError("--edge: is a part of what --all mirrors; give one of the two")
    if edge:
        return findings
    return everything if whole else mirrored
