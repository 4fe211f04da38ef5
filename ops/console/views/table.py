"""The views of the console: each is a page and, under /api/v1, the same as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ops.console.feeds import CLOCK, OPERATIONS
from ops.console.sources import Sources
from ops.console.views.ask import SQL, ask, examples, refused
from ops.console.views.chain import chain, graph
from ops.console.views.control import DIRECTIONS, RULE, control, suppression
from ops.console.views.control import FILTERS as CONTROL_FILTERS
from ops.console.views.fleet import FILTERS as FLEET_FILTERS
from ops.console.views.fleet import drawing, fleet
from ops.console.views.generations import AROUND, choices, difference, generations, savepoints
from ops.console.views.incidents import incident, incidents
from ops.console.views.machine import PEERS, machine
from ops.console.views.rejected import FILTERS as REJECTED_FILTERS
from ops.console.views.rejected import letter, rejected
from ops.console.views.spans import ARGUMENTS as SPAN
from ops.console.views.spans import SPANS
from ops.console.views.timeline import timeline

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
        refused: the view to show with status 400 where `read` raises UserError; by default a page that says why.
        is_costly: whether its `sql` is only answered to pages of the console, not where another site's leads to it.
        feeds: what tells an open page that it has changed (ops/console/feeds.py).
    """

    path: str
    name: str
    title: str
    read: Callable[[Sources, Arguments], View]
    more: Callable[[View, Sources, Arguments], View] = lambda *_: {}
    query: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()
    refused: Callable[[Arguments, str], View] | None = None
    is_costly: bool = False


PAGES = (
    Page(
        "chain",
        "chain",
        "Chain",
        lambda sources, _: chain(sources),
        lambda view, sources, _: {"graph": graph(view, sources.topics())},
        feeds=(CLOCK,),
    ),
    Page(
        "fleet",
        "fleet",
        "Fleet",
        fleet,
        lambda view, sources, arguments: drawing(arguments),
        query=("by", "sort", "page", "machine", *SPAN, *FLEET_FILTERS),
        feeds=("novelties",),
    ),
    Page(
        "fleet/{machine:path}",
        "machine",
        "Machine",
        machine,
        lambda *_: {"spans": SPANS, "places": PEERS},
        query=(*SPAN, "series", "novelty", "peers", "generation"),
        feeds=("statistics", "novelties", "control"),
    ),
    Page("incidents", "incidents", "Incidents", incidents, query=("state",), feeds=("incidents",)),
    Page(
        "incidents/{id:path}",
        "incident",
        "Incident",
        incident,
        lambda view, *_: {"drawn": timeline(view)},
        feeds=("incidents", "novelties"),
    ),
    Page("control", "control", "Control", control, query=CONTROL_FILTERS, feeds=("control",)),
    Page(
        "control/suppress",
        "suppress",
        "Suppress",
        suppression,
        lambda *_: {"directions": DIRECTIONS},
        query=RULE,
        feeds=("novelties",),
    ),
    Page("rejected", "rejected", "Rejected", rejected, query=tuple(REJECTED_FILTERS), feeds=("rejected",)),
    Page("rejected/{id:path}", "letter", "Dead letter", letter),
    Page("ask", "ask", "Ask", ask, lambda *_: examples(), query=(SQL,), refused=refused, is_costly=True),
    Page(
        "generations",
        "generations",
        "Generations",
        generations,
        lambda *_: choices(),
        feeds=("generations", OPERATIONS, CLOCK),
    ),
    Page("savepoints", "savepoints", "Savepoints", savepoints, lambda *_: choices(), feeds=(OPERATIONS,)),
    Page(
        "generations/diff/{operation}",
        "difference",
        "Comparison",
        difference,
        lambda *_: {"around_ms": AROUND},
        feeds=(OPERATIONS,),
    ),
)

NAVIGATION = tuple(page for page in PAGES if "/" not in page.path)
