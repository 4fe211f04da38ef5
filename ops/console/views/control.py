"""The views of what people tell the detector: rules and history, and what a rule would have suppressed."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from infra.contract.topics import parse_duration
from infra.errors import UserError
from infra.settings import describe
from jobs.detector.rules import Rule
from ops.console.sources import Sources

View = dict[str, Any]

SHOWN = 200  # of the history
FILTERS = ("machine", "by", "action")
RULE = tuple(Rule.model_fields)
DIRECTIONS = ("above", "below")
PAST = "7d"
CHECKED = 10_000  # novelties against which a rule is tried: the newest; Elasticsearch gives no more at once
EXAMPLES = 50
_FIELDS = ("action", "by", "machine", "series", "verdict", "novelty", "rule", "direction", "size")
_NOVELTY = ("machine", "series", "verdict", "kind", "started", "score", "observed", "expected", "unit", "text")


def control(sources: Sources, arguments: Mapping[str, str]) -> View:
    """The rules that hold, with who made them, and what was said, the newest first."""
    chosen = {name: value for name in FILTERS if (value := arguments.get(name))}
    events = sources.control()
    matching = [one for one in events if all(one.get(name) == value for name, value in chosen.items())]
    return {
        "chosen": chosen,
        "rules": _rules(events),
        "total": len(matching),
        "history": [said(one) for one in reversed(matching[-SHOWN:])],
    }


def said(event: Mapping[str, Any]) -> View:
    """A control event as a row of a history; fields that it lacks are None."""
    return {"time": event["time"], **{name: event.get(name) for name in _FIELDS}}


def _rules(events: list[dict[str, Any]]) -> list[View]:
    """Each rule that holds now, with who said so and when, the oldest first."""
    found: dict[str, View] = {}
    for event in events:
        if event["action"] == "suppress":
            found[event["rule"]] = said(event)
        elif event["action"] == "allow":
            found.pop(event["rule"], None)
    return list(found.values())


def suppression(sources: Sources, arguments: Mapping[str, str]) -> View:
    """A rule, and which novelties of the last week it would have suppressed, by their strongest moment.

    Without arguments there is no rule. Raises UserError for an argument of no use.
    """
    rule = rule_of(arguments)
    view: View = {"rule": None, "past": PAST, "hidden": 0, "of": 0, "novelties": [], "is_complete": True}
    if rule is None:
        return view
    newest = sources.documents.search("novelties", size=0, aggs={"newest": {"max": {"field": "started"}}})
    end = newest.get("aggregations", {}).get("newest", {}).get("value")
    view["rule"] = {"id": rule.id, **rule.model_dump()}
    if end is None:
        return view
    past = sources.documents.search(
        "novelties",
        query={"range": {"started": {"gte": int(end) - int(parse_duration(PAST).total_seconds() * 1000)}}},
        sort=[{"started": "desc"}],
        size=CHECKED,
        source_includes=list(_NOVELTY),
        track_total_hits=True,
    )["hits"]
    hidden = [hit for hit in past["hits"] if _matches(rule, hit["_source"])]
    return view | {
        "hidden": len(hidden),
        "of": len(past["hits"]),
        "is_complete": past["total"]["value"] <= CHECKED,
        "novelties": [{"id": hit["_id"], **_picked(hit["_source"])} for hit in hidden[:EXAMPLES]],
    }


def rule_of(arguments: Mapping[str, str]) -> Rule | None:
    """The rule that arguments describe; None if they would match every novelty. Raises UserError naming the fault."""
    fields = {name: value for name in RULE if (value := arguments.get(name))}
    try:
        rule = Rule.model_validate(fields)
    except ValidationError as error:
        raise UserError(describe(error)) from None
    return None if rule == Rule() else rule


def _matches(rule: Rule, novelty: Mapping[str, Any]) -> bool:
    """Whether a rule suppresses an indexed novelty; one without values isn't matched by a rule about values."""
    if "machine" not in novelty or "verdict" not in novelty:
        return False
    is_about_values = rule.direction is not None or rule.size is not None
    if is_about_values and not {"observed", "expected"} <= novelty.keys():
        return False
    return rule.matches(dict(novelty))


def _picked(document: Mapping[str, Any]) -> View:
    return {name: document.get(name) for name in _NOVELTY}
