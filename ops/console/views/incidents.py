"""The views of incidents: a list, and a page with the causes and the members of one."""

from collections.abc import Mapping
from typing import Any

from infra.errors import UserError
from ops.console.errors import NotThere
from ops.console.sources import Sources
from ops.console.views.places import places

View = dict[str, Any]

SHOWN = 100
STATES = {"all": {"match_all": {}}, "open": {"bool": {"must_not": {"exists": {"field": "ended"}}}}}
_LISTED = ("started", "updated", "ended", "machines", "novelties", "verdicts", "score", "text")
_MEMBER = ("novelty", "machine", "verdict", "series", "since", "score")
_NOVELTY = (
    *("started", "ended", "observed", "expected_low", "expected_high", "text", "feedback"),
    *("site", "hypervisor", "tenant", "role"),
)


def incidents(sources: Sources, arguments: Mapping[str, str]) -> View:
    """The newest incidents, all of them or those that are open. Raises UserError for another state."""
    state = arguments.get("state", "all")
    if state not in STATES:
        raise UserError(f"state={state!r}: there are {', '.join(STATES)}")
    found = sources.documents.search(
        "incidents",
        query=STATES[state],
        sort=[{"started": "desc"}],
        size=SHOWN,
        source_excludes=["members"],
        aggs={"open": {"filter": STATES["open"]}},
    )
    hits = found["hits"]
    return {
        "state": state,
        "incidents": [_summary(hit["_id"], hit["_source"]) for hit in hits["hits"]],
        "total": hits["total"]["value"],
        "open": found.get("aggregations", {}).get("open", {}).get("doc_count", 0),
    }


def _summary(identity: str, document: Mapping[str, Any]) -> View:
    causes = document.get("causes") or []
    return {"id": identity, **_picked(document, _LISTED), "cause": causes[0] if causes else None}


def incident(sources: Sources, arguments: Mapping[str, str]) -> View:
    """One incident: its causes, each member with what its novelty says now, and their places. Raises NotThere."""
    identity = arguments["id"]
    document = sources.documents.find("incidents", identity)
    if document is None:
        raise NotThere(f"There is no incident {identity}.")
    members = document.get("members") or []
    novelties = _novelties(sources, [member["novelty"] for member in members if member.get("novelty")])
    shown = [_member(member, novelties) for member in members]
    return {
        "id": identity,
        **_picked(document, (*_LISTED, "alerted", "peaked")),
        "causes": document.get("causes") or [],
        "members": shown,
        "places": places(shown),
    }


def _member(member: Mapping[str, Any], novelties: Mapping[str, View]) -> View:
    return {**_picked(member, _MEMBER), "now": novelties.get(member.get("novelty", ""))}


def _novelties(sources: Sources, ids: list[str]) -> dict[str, View]:
    """By id what the index of novelties has; an incident may be there before the last of its novelties."""
    if not ids:
        return {}
    found = sources.documents.search("novelties", query={"ids": {"values": ids}}, size=len(ids))
    return {hit["_id"]: _picked(hit["_source"], _NOVELTY) for hit in found["hits"]["hits"]}


def _picked(document: Mapping[str, Any], names: tuple[str, ...]) -> View:
    return {name: document.get(name) for name in names}
