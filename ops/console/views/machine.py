"""The view of a machine: its series as they were observed, its novelties, and what people said of it."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from infra.contract.inventory import FACTS
from ops.console.errors import NotThere
from ops.console.reads import SourceDown
from ops.console.sources import Sources
from ops.console.together import together
from ops.console.views import series
from ops.console.views.control import said
from ops.console.views.spans import Span, one_of, span_of

View = dict[str, Any]

STEPS = 120  # points of a series
DRAWN = 24  # series, those with novelties first
NOVELTIES = 100
PEERS = ("role", "hypervisor", "site", "tenant")  # places that peers share
AROUND = 1_800_000  # ms before and after a novelty that is looked at
_NOVELTY = (
    *("verdict", "kind", "series", "started", "ended", "score", "observed", "expected", "expected_low"),
    *("expected_high", "unit", "text", "feedback", "statistic"),
)
_CONTRIBUTOR = ("series", "unit", "score", "share", "observed", "expected_low", "expected_high")


def machine(sources: Sources, arguments: Mapping[str, str]) -> View:
    """What is known of one machine over a span of its own event time; of one of its series; or around a novelty.

    The control history needs Kafka, the state a running detector, open windows running statistics; `down` says which
    can't be read. Raises NotThere for a machine without statistics and novelties, and UserError for an argument of no
    use.
    """
    name, chosen, generation = arguments["machine"], arguments.get("series", ""), arguments.get("generation")
    if generation:
        sources = sources.of(generation)
    known = together(newest=lambda: _newest(sources, name), novelties=lambda: _novelties(sources, name, chosen))
    newest, novelties = known["newest"], known["novelties"]
    if newest is None and not novelties:
        raise NotThere(f"There is no machine {name}.")
    end = newest["@timestamp"] if newest else max(one["started"] for one in novelties)
    about = next((one for one in novelties if one["id"] == arguments.get("novelty")), None)
    span = span_of(_around(about, arguments, int(end)), end, STEPS)
    facts = {fact: newest[fact] for fact in FACTS if newest and newest.get(fact)}
    down: list[View] = []
    return {
        "machine": name,
        "generation": generation,
        "facts": facts,
        **span.as_dict(),
        "chosen": chosen,
        "novelty": about,
        "novelties": novelties,
        "down": down,
        **together(
            names=lambda: series.names(sources, name, span),
            series=lambda: _shown(sources, name, span, (chosen, about, novelties)),
            templates=lambda: [] if chosen else series.templates(sources, name, span),
            peers=lambda: _peers(sources, arguments, facts, span),
            control=lambda: _unless_down(down, lambda: _control(sources, name)),
            # The jobs that answer are those of one generation.
            state=lambda: None if generation else _unless_down(down, lambda: _state(sources, name, chosen)),
            open=lambda: None if generation else _unless_down(down, lambda: _open_windows(sources, name)),
        ),
    }


def _unless_down(down: list[View], read: Callable[[], Any]) -> Any:
    """What `read` gives; None if its source is down, which `down` then names once."""
    try:
        return read()
    except SourceDown as error:
        if error.source not in [one["source"] for one in down]:
            down.append({"source": error.source, "reason": error.reason})
        return None


def _state(sources: Sources, name: str, chosen: str) -> View | None:
    """What the detector holds of the machine, or of one of its series, now."""
    only = {"series": chosen} if chosen else {}
    return sources.running.answer("detector", "/state", machine=name, **only)


def _open_windows(sources: Sources, name: str) -> View | None:
    """What the statistics hold of the machine's open windows now."""
    return sources.running.answer("statistics", "/windows", machine=name)


def _newest(sources: Sources, name: str) -> View | None:
    """The machine's newest statistic, with what the inventory says of it."""
    hits = sources.documents.search(
        "statistics", query={"term": {"machine": name}}, sort=[{"@timestamp": "desc"}], size=1
    )
    found = hits["hits"]["hits"]
    return dict(found[0]["_source"]) if found else None


def _novelties(sources: Sources, name: str, chosen: str) -> list[View]:
    """The newest ones of the machine, or of one of its series."""
    matching: list[View] = [{"term": {"machine": name}}]
    if chosen:
        matching.append({"term": {"series": chosen}})
    query = {"bool": {"filter": matching}}
    found = sources.documents.search("novelties", query=query, sort=[{"started": "desc"}], size=NOVELTIES)
    return [_novelty(hit["_id"], hit["_source"]) for hit in found["hits"]["hits"]]


def _novelty(identity: str, document: Mapping[str, Any]) -> View:
    contributors = [{name: one.get(name) for name in _CONTRIBUTOR} for one in document.get("contributors") or ()]
    return {"id": identity, **{name: document.get(name) for name in _NOVELTY}, "contributors": contributors}


def _around(novelty: View | None, arguments: Mapping[str, str], newest: int) -> Mapping[str, str]:
    """The arguments, with a span around a novelty, up to what is `newest`, unless they say which."""
    if novelty is None or any(arguments.get(name) for name in ("span", "from", "to")):
        return arguments
    begun = novelty["started"]
    end = max(begun + 1, min((novelty["ended"] or newest) + AROUND, newest))
    return {**arguments, "from": str(max(0, begun - AROUND)), "to": str(end)}


def _shown(sources: Sources, name: str, span: Span, what: tuple[str, View | None, list[View]]) -> list[View]:
    """The series that are drawn: the chosen one; a novelty's and its contributors; else those with novelties first."""
    chosen, about, novelties = what
    if chosen:
        return series.of_machine(sources, name, span, [chosen])
    first = [one["series"] for one in novelties if (one["ended"] or span.end) >= span.start]
    if about:
        first = [about["series"], *(one["series"] for one in about["contributors"])]
    order = {one: place for place, one in enumerate(dict.fromkeys(filter(None, first)))}
    found = series.of_machine(sources, name, span, list(order) if about and order else None)
    return sorted(found, key=lambda one: order.get(one["series"], len(order)))[:DRAWN]


def _peers(sources: Sources, arguments: Mapping[str, str], facts: Mapping[str, str], span: Span) -> View | None:
    """The chosen series on other machines of the same place; None unless a series is chosen and the place is known."""
    kind = one_of("peers", arguments, PEERS, next((place for place in PEERS if place in facts), ""))
    chosen = arguments.get("series", "")
    if not chosen or kind not in facts:
        return None
    found = series.of_peers(sources, chosen, (kind, facts[kind]), span)
    return {"kind": kind, "name": facts[kind], "machines": found}


def _control(sources: Sources, name: str) -> list[View]:
    """What people told the detector of the machine, the newest first."""
    return [said(one) for one in reversed(sources.control()) if fnmatchcase(name, one["machine"])]
