"""`kappa quality`: how good the detector is, on recorded data with known answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from infra.errors import UserError
from ops.quality import cloud, fleet_day, nab, nab_run, nezha, rca, rca_data, smd_run
from ops.quality.peers import PEERS

app = typer.Typer()
console = Console(stderr=True)


@app.command()
def quality(
    *,
    nab_folder: Annotated[Path | None, typer.Option("--nab", help="a folder of NAB's form: data/, labels/")] = None,
    smd_folder: Annotated[
        Path | None, typer.Option("--smd", help="a folder of SMD's form: NAME.test.csv.gz ...")
    ] = None,
    nezha_folder: Annotated[
        Path | None, typer.Option("--nezha", help="a folder of Nezha's form: faulty-DAY/, fault_free/")
    ] = None,
    rca_folder: Annotated[
        Path | None, typer.Option("--rca", help="a folder of faults with known causes: sockshop/, petshop/")
    ] = None,
    interval: Annotated[float, typer.Option(min=1.0, help="s between the rows of the folder of SMD's form")] = 60.0,
    published: Annotated[
        Path | None, typer.Option("--tsb-ad", help="TSB-AD's published scores, beside ours on SMD's files")
    ] = None,
    peers: Annotated[list[str] | None, typer.Option("--peer", help=f"beside ours on SMD: {', '.join(PEERS)}")] = None,
    clouds: Annotated[int, typer.Option("--cloud", min=0, help="so many simulated clouds, each with all faults")] = 0,
    fleet_hours: Annotated[
        int,
        typer.Option(
            min=0, max=48, help=f"so many hours of {fleet_day.MACHINES} simulated machines, 24 take half an hour"
        ),
    ] = 0,
    report: Annotated[Path, typer.Option("--json", help="where the report goes")] = Path("build/quality.json"),
) -> None:
    """Score the detector in one pass over recorded or simulated data, without a look at the labels.

    Example: kappa quality --nab data/nab --smd data/smd --peer windowed_gaussian --json build/quality.json
    """
    unknown = sorted(set(peers or []) - set(PEERS))
    if unknown:
        raise UserError(f"--peer {unknown[0]}: unknown; use {', '.join(PEERS)}")
    measures: dict[str, Callable[[], Any]] = {}
    figures: dict[str, Any] = {}
    if nab_folder is not None:
        measures["nab"] = partial(nab_run.measure, nab.load(nab_folder))
    if nezha_folder is not None:
        measures["nezha"] = partial(nezha.measure, nezha.load(nezha_folder))
    if rca_folder is not None:
        measures["rca"] = partial(rca.measure, rca_data.load(rca_folder))
    if clouds:
        measures["cloud"] = partial(cloud.measure, range(1, clouds + 1))
    if fleet_hours:
        measures["fleet"] = partial(fleet_day.measure, fleet_day.MACHINES, fleet_hours)
    if smd_folder is not None:
        measures["smd"] = partial(smd_run.measure, smd_folder, interval, peers or [])
        if published is not None:
            measures["tsb_ad"] = partial(smd_run.beside_published, smd_folder, published, figures)
    if not measures:
        raise UserError(
            "quality: nothing to measure; give --nab DIR, --smd DIR, --nezha DIR, --rca DIR, --cloud NUMBER or "
            "--fleet-hours NUMBER"
        )
    report.parent.mkdir(parents=True, exist_ok=True)
    for name, measure in measures.items():
        with console.status(name):
            figures[name] = measure()
        report.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    Console().print_json(orjson.dumps(figures).decode())
