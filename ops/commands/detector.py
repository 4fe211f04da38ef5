"""`kappa detector`: operators' control events, in the topic `detector.control`."""

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from infra.errors import UserError
from infra.settings import describe
from jobs.detector import control
from jobs.detector.control import Control
from jobs.detector.rules import Rule
from jobs.runtime.settings import Settings, load_settings
from ops.backtest.cli import backtest, explain_novelty
from ops.launcher import topics_of
from ops.os_user import author

app = typer.Typer(
    help="Say why a novelty was alerted, what other settings would do, what is normal, and what to suppress.",
    no_args_is_help=True,
)
console = Console(width=None if sys.stdout.isatty() else 160)

Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
By = Annotated[str, typer.Option(help="Who says it; novelties that it ends name this person.", show_default="OS user")]


app.command("explain")(explain_novelty)
app.command("backtest")(backtest)


class Verdict(StrEnum):
    """What a person says of a novelty."""

    not_anomalous = "not-anomalous"


class Direction(StrEnum):
    """On which side of the expected value."""

    above = "above"
    below = "below"


@app.command()
def feedback(
    novelty: Annotated[str, typer.Argument(metavar="NOVELTY", help="Its id: `_id` in Elasticsearch.")],
    verdict: Annotated[Verdict, typer.Argument(help="What it is after all.")],
    bootstrap: Bootstrap = None,
    generation: Annotated[str | None, typer.Option(help="Whose novelty it is. [live]")] = None,
    by: By = "",
) -> None:
    """Say that a novelty is none: it ends, and such values of its series aren't novelties again.

    Example: kappa detector feedback 6af7bfef32657893ad3598a11635f080 not-anomalous
    """
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    event = control.feedback(settings.kafka_bootstrap, topics_of(settings)["novelties"].name, novelty)
    _send(settings, event, by)
    console.print(f"novelty {novelty} of {event['machine']}: {verdict.value}", highlight=False)


@app.command()
def reset(
    series: Annotated[str, typer.Argument(help="Which series, as a glob: 'system.cpu*'.")] = "*",
    machine: Annotated[str, typer.Option(help="Of which machines, as a glob.")] = "*",
    bootstrap: Bootstrap = None,
    by: By = "",
) -> None:
    """Reset series: they are learned as if they had never been seen, after a migration, say.

    Example: kappa detector reset 'system.disk*' --machine vm-05
    """
    if series == machine == "*":
        raise UserError("SERIES: every series of every machine would be reset; name series, or give --machine")
    _send(load_settings(kafka_bootstrap=bootstrap), control.reset(series, machine), by)
    console.print(f"series {series} on {machine} are reset", highlight=False)


@app.command()
def suppress(
    *,
    machine: Annotated[str, typer.Option(help="On which machines, as a glob.")] = "*",
    series: Annotated[str | None, typer.Option(help="Of which series, as a glob; without it silence too.")] = None,
    direction: Annotated[Direction | None, typer.Option(help="Only values on this side of the expected one.")] = None,
    size: Annotated[float | None, typer.Option(help="Only deviations of at most so much, in the series' unit.")] = None,
    bootstrap: Bootstrap = None,
    by: By = "",
) -> None:
    """Make a rule: novelties that meet all that is given are suppressed. Open ones end.

    Example: kappa detector suppress --machine 'upf-*' --series 'system.disk*' --direction below
    """
    rule = _rule(machine=machine, series=series, direction=direction and direction.value, size=size)
    if rule == Rule():
        raise UserError("suppress: every novelty would be suppressed; give --machine, --series, --direction or --size")
    _send(load_settings(kafka_bootstrap=bootstrap), control.suppress(rule), by)
    console.print(f"rule {rule.id}", highlight=False)


@app.command()
def allow(
    rule: Annotated[str, typer.Argument(help="The rule's id, as `rules` shows it.")],
    bootstrap: Bootstrap = None,
    by: By = "",
) -> None:
    """Take a rule back.

    Example: kappa detector allow 3f1c09aa
    """
    settings = load_settings(kafka_bootstrap=bootstrap)
    known = _rules(settings)
    if rule not in known:
        raise UserError(f"RULE {rule!r}: there is none; there are {', '.join(known) or 'no rules'}")
    _send(settings, control.allow(rule), by)
    console.print(f"rule {rule} is over", highlight=False)


@app.command()
def rules(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """List the rules.

    Example: kappa detector rules --json
    """
    known = _rules(load_settings(kafka_bootstrap=bootstrap))
    if as_json:
        typer.echo(json.dumps({name: rule.model_dump(exclude_none=True) for name, rule in known.items()}))
        return
    table = Table("rule", *Rule.model_fields, box=None, header_style="bold")
    for name, rule in known.items():
        table.add_row(name, *("" if value is None else str(value) for value in rule.model_dump().values()))
    console.print(table)


def _rule(**fields: object) -> Rule:
    try:
        return Rule.model_validate(fields)
    except ValidationError as error:
        raise UserError(f"suppress: {describe(error)}") from None


def _rules(settings: Settings) -> dict[str, Rule]:
    return control.rules(settings.kafka_bootstrap, topics_of(settings)[control.TOPIC].name)


def _send(settings: Settings, event: Control, by: str) -> None:
    control.send(settings.kafka_bootstrap, topics_of(settings)[control.TOPIC], event, by or author())
