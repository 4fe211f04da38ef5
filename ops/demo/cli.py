"""`kappa demo`: runs servers, chain and a simulated cloud with faults, and shows what the chain found."""

import os
import signal
import socket
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from connectors.sinks.elasticsearch import connect
from infra.errors import UserError
from infra.settings import load_settings
from ops.demo import demo as steps
from ops.demo.demo import SETTLE_SECONDS, SIMULATED_SECONDS, Demo, DemoObserver
from ops.job_addresses import ALL, JobAddresses
from ops.verify.observer import Result
from ops.verify.table import show as show_result

# Takes the name of a stage and its duration in seconds, if known; gives the function that shows its state.
Stage = Callable[[str, float | None], AbstractContextManager[Callable[[str], None]]]

app = typer.Typer()
console = Console()


@app.command()
def demo(
    *,
    once: Annotated[bool, typer.Option("--once", help="Exit after the table: 1 if something was missed.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the result to this file.")] = None,
    metrics_port: Annotated[int, typer.Option(help="Of the jobs' metrics.")] = 9400,
    console_port: Annotated[int, typer.Option(help="Of the pages; if it is taken, another.")] = steps.CONSOLE_PORT,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the pages in a browser.")] = True,
    secured: Annotated[bool, typer.Option("--secured", help="With TLS, users and rights.")] = False,
) -> None:
    """Run the whole chain on real servers, with faults in a simulated cloud, and show what the chain found.

    Its data is in KAPPA_HOME/demo and is deleted at each start.

    Example: kappa demo --once --json build/demo.json
    """
    signal.signal(signal.SIGTERM, _interrupt)
    infra = load_settings()
    began = time.monotonic()
    try:
        with steps.running(Demo.at(infra, metrics_port, _free(console_port), secured=secured)) as found:
            console.print(f"console   {found.console}", highlight=False)
            result = _run(found, open_browser=open_browser and has_desktop())
            show_result(console, result, time.monotonic() - began)
            _where(found)
            _save(json_file, result)
            if not once:
                _keep_running(found)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(0 if result.passed else 1)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _free(port: int) -> int:
    """This port, or any other one if somebody listens there."""
    with socket.socket() as probe:
        is_taken = probe.connect_ex(("127.0.0.1", port)) == 0
    if not is_taken:
        return port
    with socket.socket() as any_other:
        any_other.bind(("127.0.0.1", 0))
        return int(any_other.getsockname()[1])


def has_desktop() -> bool:
    """Whether a person sits before this machine, who would see a browser's window."""
    shows = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return shows and console.is_terminal


def _run(demo: Demo, *, open_browser: bool) -> Result:
    with _progress() as stage:
        with stage("Kafka and Elasticsearch", None) as show:
            steps.start_servers(demo, show)
        steps.start_console(demo)
        steps.start_feeds(demo)
        steps.start_chain(demo)
        with connect(demo.settings.elasticsearch_url, demo.settings.elasticsearch_identity()) as client:
            observer = DemoObserver(demo, client)
            with stage("the jobs start", None) as show:
                _await(lambda: steps.console_answers(demo), demo, 60, "the console")
                if open_browser:
                    webbrowser.open(demo.console)
                _await(lambda: _all_healthy(demo, show), demo, 180, "the jobs' start")
            with stage("eight faults in a simulated cloud, beside this machine", SIMULATED_SECONDS) as show:
                limit = SIMULATED_SECONDS + 60
                _await(lambda: _simulated(demo, observer, show), demo, limit, "the simulation")
            with stage("the last windows close", None):
                return _settled(demo, observer)


def _all_healthy(demo: Demo, show: Callable[[str], None]) -> bool:
    healthy = steps.healthy_applications(demo)
    show(", ".join(healthy))
    return len(healthy) == len(JobAddresses(demo.settings).applications)


def _simulated(demo: Demo, observer: DemoObserver, show: Callable[[str], None]) -> bool:
    show(f"{observer.look()} answers")
    return steps.simulation_ended(demo)


def _settled(demo: Demo, observer: DemoObserver) -> Result:
    """The result, after at most SETTLE_SECONDS for the last answers; the table shows faults without one as missed."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        steps.check_processes(demo)
        if result := observer.final():
            return result
        time.sleep(0.5)
    return observer.outcome()


def _await(done: Callable[[], bool], demo: Demo, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        steps.check_processes(demo)
        if time.monotonic() > deadline:
            raise UserError(f"{what}: not within {seconds:.0f} s; look at {demo.log_of('jobs')}")
        time.sleep(1)


@contextmanager
def _progress() -> Iterator[Stage]:
    """Show a line for each stage, with the elapsed time."""
    columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), BarColumn(20))
    with Progress(*columns, TimeElapsedColumn(), TextColumn("[dim]{task.fields[state]}"), console=console) as progress:

        @contextmanager
        def stage(name: str, seconds: float | None) -> Iterator[Callable[[str], None]]:
            task, began = progress.add_task(name, total=seconds, state=""), time.monotonic()

            def show(state: str) -> None:
                elapsed = time.monotonic() - began
                progress.update(task, state=state, completed=min(elapsed, seconds) if seconds else 0)

            yield show
            progress.update(task, total=1, completed=1)

        yield stage


def _where(demo: Demo) -> None:
    settings, jobs = demo.settings, JobAddresses(demo.settings)
    console.print(
        f"console   {demo.console}\n"
        f"topics    `kappa topics describe --bootstrap {settings.kafka_bootstrap}`\n"
        f"indices   {settings.elasticsearch_url}/kappa-novelties/_search?q=verdict:state_change\n"
        f"tables    {settings.delta_of('novelties')} (Delta)\n"
        f"metrics   {jobs.metrics(ALL)}\n"
        f"logs      {demo.log_of('jobs')}",
        highlight=False,
        soft_wrap=True,
    )


def _save(file: Path | None, result: Result) -> None:
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(result.as_dict(), option=orjson.OPT_INDENT_2))


def _keep_running(demo: Demo) -> None:
    steps.keep_feeding(demo)
    console.print("The chain runs on; Ctrl-C ends it.")
    while True:
        steps.check_processes(demo)
        time.sleep(1)
