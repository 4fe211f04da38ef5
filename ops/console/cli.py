"""`kappa console`: serves pages that show the chain."""

import signal
import socket
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import UserError

if TYPE_CHECKING:
    from ops.console.settings import ConsoleSettings

app = typer.Typer()
DRAIN_SECONDS = 3


@app.command()
def console(
    *,
    host: Annotated[str | None, typer.Option(help="Without authentication a loopback address. [127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="0: any free one. [8080]")] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    kafka_bootstrap: Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")] = None,
    elasticsearch_url: Annotated[str | None, typer.Option(help="[http://127.0.0.1:9200]")] = None,
) -> None:
    """Serve pages that show the chain and what it has found, and on which operators act, until SIGTERM.

    It keeps nothing. A server that is down is shown as down; the pages that don't need it go on.

    Example: kappa console --open
    """
    # elasticsearch-py loads these if they are there, for values that the console doesn't send: 30 MB.
    for name in ("pyarrow", "pandas"):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]

    from jobs.runtime.logs import configure_logs
    from jobs.runtime.settings import load_settings
    from ops.console.server import application
    from ops.console.settings import load_console_settings
    from ops.console.sources import Sources
    from ops.console.views.chain import now
    from ops.console.writes import Writes
    from ops.os_user import os_user

    own = load_console_settings(host=host, port=port)
    settings = load_settings(kafka_bootstrap=kafka_bootstrap, elasticsearch_url=elasticsearch_url)
    sources = Sources(settings, own)
    sources.topics()
    configure_logs(settings)
    sources.history.start(lambda: now(sources)["queries"])
    with _listen(own) as listener:
        address = f"http://{own.host}:{listener.getsockname()[1]}"
        typer.echo(f"console: {address}")
        if open_browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        _serve(application(sources, own, Writes(sources), os_user()), listener)


def _listen(own: "ConsoleSettings") -> socket.socket:
    """A socket that listens. Raises UserError if the address can't be had."""
    try:
        family = socket.getaddrinfo(own.host, own.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((own.host, own.port), family=family)
    except OSError as error:
        raise UserError(
            f"KAPPA_CONSOLE_PORT={own.port}: {own.host}: {error.strerror}; choose another by --port"
        ) from error


def _serve(served: object, listener: socket.socket) -> None:
    """Answer requests until SIGTERM or SIGINT; those that are being answered are completed."""
    import uvicorn

    config = uvicorn.Config(
        served,  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks is decided by the address that really asks
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = uvicorn.Server(config)
    # uvicorn raises the signal again when it has ended; the exit code of a stop is 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listener])
