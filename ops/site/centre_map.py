"""The map of topics of a mirror: that of a site, but that records keep the Kafka timestamps of the site's brokers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from infra.contract.topics import DEFAULT_MAP, Topic, TopicMap, load_topics

HEAD = "# By `kappa site topics`. Of mirrored topics: CreateTime, so that the clock of the site's broker counts.\n"


def centre_map(path: Path | None, choose: Callable[[TopicMap], list[Topic]]) -> str:
    """A topics.yaml for where the chosen topics are mirrored to, from the one at `path` or the one that comes along.

    Raises:
        UserError: the file can't be read or used.
    """
    keys = {topic.name for topic in choose(load_topics(path))}
    declared: dict[str, Any] = yaml.safe_load((path or DEFAULT_MAP).read_text())
    for name in keys:
        declared["topics"][name] = {**declared["topics"][name], "timestamp": "CreateTime"}
    return HEAD + yaml.safe_dump(declared, sort_keys=False, width=1000)
