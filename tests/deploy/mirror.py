"""`make test-mirror`: infra/docker/mirror.yml, by the commands of docs/how-to/sites.md; build/mirror.json.

A second broker is the site. Its telemetry goes to the stack's Kafka by a MirrorMaker 2 in a container, which is killed
while records come. Then each partition must have the same records on both sides: key, value, headers and time.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.deploy.compose import Stack
from tests.deploy.stack import POLL_SECONDS, write_json

REPORT = Path("build/mirror.json")
SITE, CENTRE = "dc1:9092", "kafka:9092"
KILLS, SPACING_SECONDS = 3, 15
SECONDS = 300  # until all must be there

COMPARE = f"""
import json
from connectors.kafka.reader import read_topic
from infra.contract.topics import load_topics
from ops.site.mirror import mirrored

def records(bootstrap, topic):
    found = {{}}
    for one in read_topic(bootstrap, topic):
        record = one.key(), one.value(), one.headers(), one.timestamp()[1]
        found.setdefault(one.partition(), []).append(record)
    return found

facts = {{}}
for topic in (topic.name for topic in mirrored(load_topics())):
    here, there = records({SITE!r}, topic), records({CENTRE!r}, topic)
    count = lambda found: sum(map(len, found.values()))
    facts[topic] = {{"site": count(here), "centre": count(there), "same": here == there}}
print(json.dumps(facts))
"""


class Centre(Stack):
    """The stack with a mirror of the site, and no job."""

    def __init__(self, folder: Path) -> None:
        super().__init__("small")
        self.map, self.properties = folder / "centre.yaml", folder / "dc1.properties"
        self.environment |= {"KAPPA_CENTRE": str(self.map), "KAPPA_SITE": str(self.properties)}

    def compose(self, *arguments: str) -> str:
        """`docker compose` in this project, with the mirror and the site's Kafka."""
        files = ("docker-compose.yml", "infra/docker/mirror.yml", "tests/deploy/site.yml")
        return super().compose(*(part for file in files for part in ("-f", file)), *arguments)

    def configure(self) -> None:
        """Write the map of topics and the mirror's settings, which the containers mount."""
        alone = ("run", "--rm", "--no-deps", "-T", "kappa", "site")
        self.map.write_text(self.compose(*alone, "topics"))
        self.properties.write_text(self.compose(*alone, "mirror", "dc1", "--from", SITE, "--to", CENTRE))
        for file in (self.map, self.properties):
            file.chmod(0o644)

    def on_site(self, *arguments: str) -> None:
        """A command of ours against the site's Kafka."""
        self.compose("run", "--rm", "--no-deps", "-T", "-e", f"KAPPA_KAFKA_BOOTSTRAP={SITE}", "kappa", *arguments)

    def compared(self) -> dict[str, dict[str, Any]]:
        """By mirrored topic how many records site and centre have, and whether they are the same."""
        return dict(json.loads(self.python(COMPARE)))

    def gone(self) -> None:
        """Remove everything."""
        self.compose("down", "--volumes", "--remove-orphans")


def test(centre: Centre) -> dict[str, Any]:
    """Run it; gives the report."""
    began = time.monotonic()
    centre.configure()
    centre.up("kafka", "dc1")
    centre.on_site("topics", "apply")
    centre.up("mirror")
    centre.compose("run", "-d", "--no-deps", "-e", f"KAPPA_KAFKA_BOOTSTRAP={SITE}", "kappa", *_simulation())
    for _ in range(KILLS):
        time.sleep(SPACING_SECONDS)
        centre.kill("mirror")
    deadline = time.monotonic() + SECONDS
    while not _is_complete(facts := centre.compared()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return {
        "passed": _is_complete(facts),
        "kills": KILLS,
        "topics": facts,
        "seconds": round(time.monotonic() - began),
    }


def _simulation() -> tuple[str, ...]:
    return ("simulate", "--json", "--duration", f"{(KILLS + 1) * SPACING_SECONDS}s", "--truth", "/tmp/truth")


def _is_complete(facts: dict[str, dict[str, Any]]) -> bool:
    """Whether nothing differs, and the telemetry isn't empty."""
    return all(one["same"] for one in facts.values()) and facts["telemetry.otlp.metrics"]["site"] > 0


def main() -> int:
    """The exit code: 0 if the centre has what the site has."""
    with TemporaryDirectory() as folder:
        centre = Centre(Path(folder))
        try:
            facts = test(centre)
        finally:
            centre.gone()
    write_json(REPORT, facts)
    print(json.dumps(facts, indent=2))
    return 0 if facts["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
