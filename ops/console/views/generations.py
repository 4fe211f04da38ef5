"""The views of generations: the registry's list with progress, savepoints, commands that run, and a comparison."""

from collections.abc import Mapping
from typing import Any

from infra.contract.topics import LIVE
from jobs.table import JOBS
from ops.console.reads import SourceDown
from ops.console.sources import Sources
from ops.console.together import together
from ops.replay.registry import Generation, Registry

View = dict[str, Any]

SHOWN = 100  # differences
AROUND = 3_600_000  # ms before and after a record that its link shows
UNDER_WAY = ("restoring", "replaying")


def generations(sources: Sources, _: Mapping[str, str]) -> View:
    """The live generation, the planned ones, records of the topic that can't be used; what was begun here."""
    registry = sources.registry()
    planned = [registry.find(LIVE), *registry.generations.values()]
    under_way = [one.name for one in planned if one.state in UNDER_WAY]
    progress = together(**{name: lambda name=name: _progress(sources, name) for name in under_way}) if under_way else {}
    return {
        "promoted": registry.promotion.generation,
        "previous": registry.promotion.previous,
        "generations": [_row(one, registry) | {"progress": progress.get(one.name)} for one in planned],
        "refused": [{"name": name, "reason": reason} for name, reason in sorted(registry.refused.items())],
        "operations": operations(sources),
    }


def _row(generation: Generation, registry: Registry) -> View:
    is_live = generation.name == LIVE
    return {
        "name": generation.name,
        "state": generation.state,
        "is_promoted": generation.name == registry.promotion.generation,
        "base": None if is_live else generation.base,
        "jobs": list(generation.jobs),
        "begin": None if is_live else generation.begin,
        "until": None if is_live else generation.until,
        "source": generation.source,
        "platform": None if is_live else generation.platform,
        "code": generation.image or generation.ref,
        "settings": generation.settings,
    }


def _progress(sources: Sources, name: str) -> View | None:
    """How far a replay is, and how many seconds it still takes at its pace; None if that can't be told now."""
    try:
        return sources.progress(name)
    except SourceDown:
        return None


def operations(sources: Sources) -> list[View]:
    """The commands that were begun here, the newest first."""
    return [
        {
            "number": one.number,
            "command": one.command,
            "by": one.by,
            "begun": int(one.begun * 1000),
            "code": one.code,
            "seconds": None if one.ended is None else round(one.ended - one.begun, 1),
            "text": one.text(),
            "is_diff": one.arguments[:2] == ("replay", "diff"),
        }
        for one in sources.operations.every()
    ]


def choices() -> View:
    """What only the page needs: which jobs a replay may begin with."""
    return {"jobs": [job.name for job in JOBS if job.is_replayable]}


def savepoints(sources: Sources, _: Mapping[str, str]) -> View:
    """The savepoints, the newest first where that is known, and the commands that were begun here."""
    found = sources.savepoints()
    found.sort(key=lambda one: str(one.get("taken", "")), reverse=True)
    return {"savepoints": found, "operations": operations(sources)}


def difference(sources: Sources, arguments: Mapping[str, str]) -> View:
    """What a comparison that was begun here has found. Raises UserError if there is none of this number."""
    operation = sources.operations.find(arguments["operation"])
    one, other = operation.arguments[2:4]
    view: View = {"one": one, "other": other, "is_ended": operation.code is not None, "by": operation.by}
    if operation.code is None:
        return view | {"compared": {}, "summary": [], "differences": [], "total": 0}
    found = operation.json()
    return view | {
        "compared": found["compared"],
        "summary": found["summary"],
        "total": len(found["differences"]),
        "differences": [_shown(one) for one in found["differences"][:SHOWN]],
    }


def _shown(difference: Mapping[str, Any]) -> View:
    """A difference with the fields that matter side by side: those that differ, or of a single record all."""
    one, other = difference["first"], difference["second"]
    known = one or other or {}
    names = difference["fields"] or sorted(known)
    time = known.get("time_unix_nano")
    return {
        "topic": difference["topic"],
        "kind": difference["kind"],
        "id": known.get("id"),
        "machine": known.get("machine"),
        "series": known.get("series"),
        "time": time // 1_000_000 if isinstance(time, int) else None,
        "fields": [{"name": name, "one": (one or {}).get(name), "other": (other or {}).get(name)} for name in names],
    }
