"""`kappa settings`: what a job would run with."""

import typer

from jobs.runtime.settings import load_settings

app = typer.Typer()


@app.command("settings")
def show_settings() -> None:
    """List every setting with its value: flags aside, what a job would run with.

    Example: KAPPA_TRIGGER_SECONDS=5 kappa settings
    """
    for name, value in load_settings().model_dump().items():
        shown = "********" if "password" in name and value else value
        typer.echo(f"KAPPA_{name.upper()}={'' if shown is None else shown}")
