"""The views of the console: each is a page and, under /api/v1, the same as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ops.console.chain import chain, graph
from ops.console.fleet import FILTERS as FLEET_FILTERS
from ops.console.fleet import SPANS, drawing, fleet
from ops.console.generations import generations
from ops.console.incidents import incident, incidents
from ops.console.machine import STEPS, machine
from ops.console.plot import HEIGHT, WIDTH, plot
from ops.console.rejected import FILTERS as REJECTED_FILTERS
from ops.console.rejected import letter, rejected
from ops.console.sources import Sources

Arguments = Mapping[str, str]  # of the query, and of the path
View = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """A view: `read` gives what its JSON has; `more` adds what only the page needs, such as a drawing.

    Attributes:
        path: of the page, below / and below /api/v1/.
        name: of the template.
        read: may raise SourceDown, NotThere, or UserError for an argument that can't be used.
        query: the names of the arguments beside those in the path.
    """

    path: str
    name: str
    title: str
    read: Callable[[Sources, Arguments], View]
    more: Callable[[View, Sources, Arguments], View] = lambda *_: {}
    query: tuple[str, ...] = ()


def _plots(view: View) -> View:
    """What only the page of a machine needs: the drawing of each series."""
    drawn = [plot(one, view["novelties"], view["start"], view["step"]) for one in view["series"]]
    return {"plots": drawn, "spans": SPANS, "steps": STEPS, "width": WIDTH, "height": HEIGHT}


PAGES = (
    Page(
        "chain",
        "chain",
        "Chain",
        lambda sources, _: chain(sources),
        lambda view, sources, _: {"graph": graph(view, sources.topics())},
    ),
    Page("fleet", "fleet", "Fleet", fleet, lambda *_: drawing(), ("span", "sort", *FLEET_FILTERS)),
    Page("fleet/{machine:path}", "machine", "Machine", machine, lambda view, *_: _plots(view), ("span", "series")),
    Page("incidents", "incidents", "Incidents", incidents, query=("state",)),
    Page("incidents/{id:path}", "incident", "Incident", incident),
    Page("rejected", "rejected", "Rejected", rejected, query=REJECTED_FILTERS),
    Page("rejected/{id:path}", "letter", "Dead letter", letter),
    Page("generations", "generations", "Generations", generations),
)
