"""The views of the console: each is a page and, under /api/v1, the same as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ops.console.sources import Sources
from ops.console.views.chain import chain, graph
from ops.console.views.control import DIRECTIONS, RULE, control, suppression
from ops.console.views.control import FILTERS as CONTROL_FILTERS
from ops.console.views.fleet import FILTERS as FLEET_FILTERS
from ops.console.views.fleet import SPANS, drawing, fleet
from ops.console.views.generations import generations
from ops.console.views.incidents import incident, incidents
from ops.console.views.machine import STEPS, machine
from ops.console.views.plot import HEIGHT, WIDTH, plot
from ops.console.views.rejected import FILTERS as REJECTED_FILTERS
from ops.console.views.rejected import letter, rejected

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
    Page("control", "control", "Control", control, query=CONTROL_FILTERS),
    Page("control/suppress", "suppress", "Suppress", suppression, lambda *_: {"directions": DIRECTIONS}, RULE),
    Page("rejected", "rejected", "Rejected", rejected, query=tuple(REJECTED_FILTERS)),
    Page("rejected/{id:path}", "letter", "Dead letter", letter),
    Page("generations", "generations", "Generations", generations),
)

NAVIGATION = tuple(page for page in PAGES if "/" not in page.path)
