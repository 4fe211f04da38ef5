"""The map of topics of a mirror: that of a site, but that records keep the Kafka timestamps of the site's brokers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from infra.contract.lateness import TOPIC
from infra.contract.topics import DEFAULT_MAP, Topic, TopicMap, format_duration, load_topics

HEAD = """# By `kappa site topics`. Of mirrored topics: CreateTime, so that the clock of the site's broker counts; and
# where its decisions on lateness are not mirrored, one that is always waited for: nothing is late here alone.
"""


def centre_map(path: Path | None, choose: Callable[[TopicMap], list[Topic]]) -> str:
    """A topics.yaml for where the chosen topics are mirrored to, from the one at `path` or the one that comes along.

    Raises:
        UserError: the file can't be read or used.
    """
    declared: dict[str, Any] = yaml.safe_load((path or DEFAULT_MAP).read_text())
    chosen = choose(load_topics(path))
    follows_decisions = any(topic.name == TOPIC for topic in chosen)
    for topic in chosen:
        declared["topics"][topic.name] |= {"timestamp": "CreateTime"}
        if topic.lateness and not follows_decisions:
            declared["topics"][topic.name] |= {"lateness": format_duration(topic.lateness.max)}
    return HEAD + yaml.safe_dump(declared, sort_keys=False, width=1000)
