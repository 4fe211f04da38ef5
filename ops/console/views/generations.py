"""The view of generations: the registry's list, and which of them readers see."""

from collections.abc import Mapping
from typing import Any

from infra.contract.topics import LIVE
from ops.console.sources import Sources
from ops.replay.registry import Generation, Registry

View = dict[str, Any]


def generations(sources: Sources, _: Mapping[str, str]) -> View:
    """The live generation, the planned ones, and records of the topic that can't be used."""
    registry = sources.registry()
    planned = [registry.find(LIVE), *registry.generations.values()]
    return {
        "promoted": registry.promotion.generation,
        "previous": registry.promotion.previous,
        "generations": [_row(one, registry) for one in planned],
        "refused": [{"name": name, "reason": reason} for name, reason in sorted(registry.refused.items())],
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
