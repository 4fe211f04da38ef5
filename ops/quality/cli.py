"""`kappa quality`: how good the detector is, on recorded data with known answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from infra.errors import UserError
from jobs.detector.model.arrays import Floats
from ops.quality import cloud, nab, nab_run, nezha, rca, rca_data, smd
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
    peers: Annotated[list[str] | None, typer.Option("--peer", help=f"beside ours on SMD: {', '.join(PEERS)}")] = None,
    clouds: Annotated[int, typer.Option("--cloud", min=0, help="so many simulated clouds, each with all faults")] = 0,
    report: Annotated[Path, typer.Option("--json", help="where the report goes")] = Path("build/quality.json"),
) -> None:
    """Score the detector in one pass over recorded or simulated data, without a look at the labels.

    Example: kappa quality --nab data/nab --smd data/smd --peer windowed_gaussian --json build/quality.json
    """
    unknown = sorted(set(peers or []) - set(PEERS))
    if unknown:
        raise UserError(f"--peer {unknown[0]}: unknown; use {', '.join(PEERS)}")
    measures: dict[str, Callable[[], Any]] = {}
    if nab_folder is not None:
        measures["nab"] = partial(nab_run.measure, nab.load(nab_folder))
    if nezha_folder is not None:
        measures["nezha"] = partial(nezha.measure, nezha.load(nezha_folder))
    if rca_folder is not None:
        measures["rca"] = partial(rca.measure, rca_data.load(rca_folder))
    if clouds:
        measures["cloud"] = partial(cloud.measure, range(1, clouds + 1))
    if smd_folder is not None:
        measures["smd"] = partial(_smd, smd.load(smd_folder), peers or [])
    if not measures:
        raise UserError(
            "quality: nothing to measure; give --nab DIR, --smd DIR, --nezha DIR, --rca DIR or --cloud NUMBER"
        )
    figures: dict[str, Any] = {}
    report.parent.mkdir(parents=True, exist_ok=True)
    for name, measure in measures.items():
        with console.status(name):
            figures[name] = measure()
        report.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    Console().print_json(orjson.dumps(figures).decode())


def _smd(machines: list[smd.Machine], peers: list[str]) -> dict[str, Any]:
    ours = smd.ours(machines)
    figures: dict[str, Any] = {name: _beside_others(machines, smd.peer(machines, PEERS[name])) for name in peers}
    return {"ours": _beside_others(machines, ours.scores) | {"shipped": smd.found(machines, ours.alerts)}} | figures


def _beside_others(machines: list[smd.Machine], scores: dict[str, Floats]) -> dict[str, float]:
    return smd.areas(machines, scores) | smd.at_budget(machines, scores)
