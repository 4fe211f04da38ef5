"""`kappa rescale`: more partitions for the chain, without losing what its jobs have learned."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from connectors.kafka.access import reach
from infra.errors import UserError
from jobs.runtime.logs import configure_logs
from jobs.runtime.session import session
from jobs.runtime.settings import Settings, load_storage_settings
from ops.replay import platforms
from ops.replay.cli import Platform
from ops.replay.registry import Generation, Registry
from ops.rescale.rescale import Rescaler, Rescaling
from ops.savepoints import savepoints
from ops.savepoints.saved import ChainSavepoint

app = typer.Typer()
errors = Console(stderr=True)


@app.command()
def rescale(
    *,
    partitions: Annotated[int, typer.Option(min=2, help="How many; a multiple of those that there are.")],
    name: Annotated[str, typer.Option("--as", help="The new generation's name, e.g. wide.")],
    savepoint: Annotated[str, typer.Option("--from", help="A savepoint of all jobs, e.g. monday.")],
    on: Annotated[
        Platform | None, typer.Option(help="What runs its jobs. [what this command runs on]", case_sensitive=False)
    ] = None,
    image: Annotated[str | None, typer.Option(help="The image that it runs. [the live generation's]")] = None,
) -> None:
    """Make a generation of the whole chain with more partitions, which goes on from a savepoint of all jobs.

    Its machines are divided among more shards, each with what was learned of its own. It is only planned and filled
    here; what runs it is printed. Once it has caught up, compare and promote it: kappa replay diff, promote.

    Example: kappa savepoint create monday --all; kappa rescale --partitions 16 --from monday --as wide
    """
    settings = load_storage_settings()
    configure_logs(settings)
    platform = on.value if on else settings.platform
    platforms.check(platform, image, None, False)
    reach(settings.kafka_bootstrap)
    registry = Registry.read(settings.kafka_bootstrap)
    rescaler = Rescaler(Rescaling(name, partitions, platform, image), _saved(savepoint, settings), registry, settings)
    with errors.status("starting") as status, session("kappa.rescale", settings) as spark:
        made = rescaler.run(spark, status.update if sys.stderr.isatty() else errors.print)
    _tell(made, registry, settings)


def _saved(name: str, settings: Settings) -> ChainSavepoint:
    found = savepoints.read(name, settings)
    if isinstance(found, ChainSavepoint):
        return found
    raise UserError(f"--from {name}: is of {found.job} alone; take one of all jobs: kappa savepoint create NAME --all")


def _tell(made: Generation, registry: Registry, settings: Settings) -> None:
    if made.platform == "processes":
        next_step = f"run it: kappa replay resume {made.name}"
    else:
        typer.echo(platforms.to_apply(made, registry.generations.values(), settings))
        next_step = f"{platforms.HOW[made.platform]}, then: kappa replay watch {made.name}"
    errors.print(f"{made.name} is planned with {made.partitions} partitions; {next_step}", soft_wrap=True)
