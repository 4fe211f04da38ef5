"""The view of the fleet: a heat map of machines, or groups of them, and time, and what is open now."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from infra.errors import UserError
from ops.console.sources import Sources
from ops.console.together import together
from ops.console.views.lanes import BY, SORTS, Lanes, buckets
from ops.console.views.spans import ARGUMENTS, SPANS, Span, one_of, span_of

View = dict[str, Any]

COLUMNS = 60
LANES = 60  # of a page
MOST_LANES = 10_000
OPEN = 50
CHOICES = 200  # values of a filter
FILTERS = ("site", "hypervisor", "tenant", "role", "verdict")
CHOSEN = ("site", "tenant", "role", "verdict")  # filters that are a list; a hypervisor is chosen in the map
BELOW = {"site": "hypervisor", "hypervisor": "machine", "tenant": "machine", "role": "machine"}
# Of a verdict in a cell; of several the first one.
MARKS = {"gone": "×", "silence": "–", "new_entity": "+", "state_change": "≠"}  # noqa: RUF001
_NEWEST = "newest"
_OPEN_FIELDS = ("machine", "verdict", "series", "started", "score", "site", "role", "text")


def fleet(sources: Sources, arguments: Mapping[str, str]) -> View:
    """Scores by machine, or by group, and time. Raises UserError for an argument of no use.

    The span ends with the newest novelty, not now: a chain that is behind, or a replay, is seen as well.
    """
    by, sort, page = one_of("by", arguments, BY), one_of("sort", arguments, tuple(SORTS)), _page(arguments)
    chosen = {name: value for name in FILTERS if (value := arguments.get(name))}
    text = arguments.get("machine", "")
    head = sources.documents.search("novelties", size=0, aggs=_head(), query={"match_all": {}}).get("aggregations", {})
    end = (head.get(_NEWEST) or {}).get("value")
    span = span_of(arguments, end or 0, COLUMNS)
    matching = [*({"term": {name: value}} for name, value in chosen.items()), *_named(text)]
    view: View = {
        "by": by,
        "sort": sort,
        "page": page,
        **span.as_dict(),
        "chosen": chosen,
        "machine": text,
        "choices": {name: [one["key"] for one in buckets(head, name)] for name in CHOSEN},
        "times": [],
        "total": 0,
        "overall": None,
        "lanes": [],
        "open": {"total": 0, "verdicts": {}, "novelties": []},
    }
    return view if end is None else view | _found(sources, matching, span, (by, sort, page))


def _found(sources: Sources, matching: list[View], span: Span, order: tuple[str, str, int]) -> View:
    by, sort, page = order
    lanes = Lanes(sources, by, matching, span)

    def of_page() -> View:
        names, total = lanes.names(sort, (page - 1) * LANES, LANES)
        return {"total": total, "lanes": lanes.drawn(names, sort)}

    known = together(page=of_page, overall=lanes.overall, open=lambda: _open(sources, matching))
    return {"times": span.times, **known.pop("page"), **known}


def _page(arguments: Mapping[str, str]) -> int:
    text = arguments.get("page") or "1"
    if not text.isdecimal() or not 1 <= int(text) <= MOST_LANES // LANES:
        raise UserError(f"page={text!r}: must be a number from 1 to {MOST_LANES // LANES}")
    return int(text)


def _named(text: str) -> list[View]:
    """A filter for machines whose name contains a text; `*` stands for anything."""
    if not text:
        return []
    pattern = text if "*" in text else f"*{text}*"
    return [{"wildcard": {"machine": {"value": pattern, "case_insensitive": True}}}]


def _head() -> View:
    return {_NEWEST: {"max": {"field": "started"}}} | {
        name: {"terms": {"field": name, "size": CHOICES, "order": {"_key": "asc"}}} for name in CHOSEN
    }


def _open(sources: Sources, matching: list[View]) -> View:
    """The novelties that have not ended: how many of each verdict, and the strongest."""
    found = sources.documents.search(
        "novelties",
        size=OPEN,
        query={"bool": {"filter": matching, "must_not": [{"exists": {"field": "ended"}}]}},
        sort=[{"score": "desc"}],
        aggs={"verdict": {"terms": {"field": "verdict", "size": 9}}},
        track_total_hits=True,
    )
    hits = found["hits"]
    verdicts = {one["key"]: one["doc_count"] for one in buckets(found.get("aggregations", {}), "verdict")}
    listed = [{"id": hit["_id"], **{name: hit["_source"].get(name) for name in _OPEN_FIELDS}} for hit in hits["hits"]]
    return {"total": hits["total"]["value"], "verdicts": verdicts, "novelties": listed}


class Drawing(NamedTuple):
    """The sizes of the heat map, in SVG units."""

    label: int = 190
    cell: int = 14
    row: int = 18
    head: int = 20
    ticks: int = 10  # columns between two times

    def width(self) -> int:
        return self.label + COLUMNS * self.cell

    def height(self, rows: int) -> int:
        return self.head + rows * self.row

    def x(self, column: int) -> int:
        return self.label + column * self.cell

    def y(self, row: int) -> int:
        return self.head + row * self.row

    def path(self, cells: list[View], row: int, level: int) -> str:
        """The cells of one colour in one lane, as one path."""
        box = f"h{self.cell - 2}v{self.row - 2}h-{self.cell - 2}z"
        top = self.y(row) + 1
        return "".join(f"M{self.x(one['column']) + 1},{top}{box}" for one in cells if one["level"] == level)

    def marks(self, cells: list[View], row: int) -> list[tuple[int, int, str, int]]:
        """(x, y, mark, level of the colour below it) of the cells that have a mark."""
        marked = ((one, next((MARKS[name] for name in MARKS if name in one["verdicts"]), None)) for one in cells)
        middle, line = self.cell // 2, self.y(row) + 13
        return [(self.x(one["column"]) + middle, line, mark, one["level"]) for one, mark in marked if mark]


def drawing(arguments: Mapping[str, str]) -> View:
    """What only the page needs: sizes, marks, what can be chosen, and the span for a machine's page."""
    return {
        "span_arguments": {name: arguments[name] for name in ARGUMENTS if name in arguments},
        "draw": Drawing(),
        "marks": MARKS,
        "sorts": tuple(SORTS),
        "spans": SPANS,
        "ways": BY,
        "below": BELOW,
        "lanes": LANES,
    }
