"""`kappa verify`: compares the answers of a running chain with the truth of a running simulation."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer
from elasticsearch import ApiError, AuthenticationException, AuthorizationException, TransportError
from rich.console import Console

from connectors.sinks.elasticsearch import connect
from connectors.sinks.elasticsearch_errors import user_errors
from infra.errors import UserError
from jobs.runtime.settings import Settings, load_settings, present_identity
from ops.verify.observer import Observer, Result
from ops.verify.table import show

app = typer.Typer()
console = Console(width=120)

POLL_SECONDS = 5.0


@app.command()
def verify(
    truth: Annotated[Path | None, typer.Option(help="The simulator's --truth; else KAPPA_HOME/truth.")] = None,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the faults and the chain's answers.")] = 600,
    generation: Annotated[str | None, typer.Option(help="Whose answers. [live]")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the result to this file, too.")] = None,
) -> None:
    """Wait for the chain's answers to the simulator's faults and compare both: exits with 1 if anything is missed.

    The faults are compared with the documents in Elasticsearch, and every event of the windows that the truth has
    closed with the records in Kafka.

    Example: kappa verify --truth .kappa/truth --wait 300
    """
    settings = load_settings(generation=generation)
    began = time.monotonic()
    result = _await(partial(_look, settings, truth or settings.home / "truth", {}), began + wait)
    show(console, result, time.monotonic() - began)
    if json_file:
        json_file.write_bytes(orjson.dumps(result.as_dict(), option=orjson.OPT_INDENT_2))
    raise typer.Exit(0 if result.passed else 1)


def _await(look: Callable[[bool], Result | None], deadline: float) -> Result:
    """Call `look` until it gives a result; after the deadline its argument is True: the last call.

    An Elasticsearch that is down is waited for, like a result. Raises UserError if it refuses us.
    """
    while True:
        last = time.monotonic() > deadline
        try:
            if result := look(last):
                return result
        except (ApiError, TransportError) as error:
            if last or isinstance(error, AuthenticationException | AuthorizationException):
                with user_errors():
                    raise
        time.sleep(POLL_SECONDS)


def _look(settings: Settings, truth: Path, seen: dict[str, float], last: bool) -> Result | None:
    """`_compare` with a new client, of who we are now: a kept connection could lead to a gateway that has no server."""
    with connect(settings.elasticsearch_url, present_identity(), present_identity) as client:
        return _compare(Observer(settings, truth, client, seen), last)


def _compare(observer: Observer, last: bool) -> Result | None:
    """The comparison if every fault is found and its time can be compared, or if this is the last call; else None."""
    since, whole = observer.truth.span()
    until = min(whole, observer.emitted_until())
    if _is_complete(observer, until):
        return observer.result(since, until)
    return _partial_result(observer, since, until) if last else None


def _is_complete(observer: Observer, until: int) -> bool:
    observer.look()
    begun = observer.truth.faults()
    if len(begun) < observer.truth.planned() or any(fault["start_unix_nano"] >= until for fault in begun):
        return False
    return all(row.found for row in observer.rows())


def _partial_result(observer: Observer, since: int, until: int) -> Result:
    if not since:
        raise UserError(f"truth {str(observer.truth.folder)!r}: no window has ended yet; wait for longer (--wait)")
    return observer.result(since, until)
