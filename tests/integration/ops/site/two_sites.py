"""Two sites with a chain each, and the centre to which their telemetry is mirrored."""

from dataclasses import dataclass, field

from tests.chaos.processes import Job
from tests.chaos.reading import Record, read_topic
from tests.integration.ops.records import parsed
from tests.integration.ops.site.mirroring import Arrivals, sent
from tests.integration.ops.small_chain import SmallChain

STEP = 4  # seconds that are sent before the centre has to have them: less than what a watermark leaves
KILLS = (60, 180)  # of the mirror of dc1
CUT = 120  # since when nothing comes from dc2
CUT_S = 3600  # how long that lasts
SENT = CUT + CUT_S  # seconds of the simulation


@dataclass
class Sites:
    """Two sites, their centre, and what brings it their records."""

    chains: dict[str, SmallChain]  # of the sites, by their names
    centre: SmallChain
    mirrors: dict[str, Job]
    arrivals: Arrivals
    cut_at: dict[str, int] = field(default_factory=dict)  # records of dc2 that came before its mirror was cut

    def feed(self) -> None:
        """Send all in step, as two sites send at the same time; dc1's mirror is killed, and dc2 cut off, on the way."""
        dc1, dc2 = self.chains["dc1"], self.chains["dc2"]
        for second in range(STEP, SENT + STEP, STEP):
            dc1.feed_until(second)
            dc2.feed_until(second)
            if second in KILLS:
                self.mirrors["dc1"].kill()
                self.mirrors["dc1"].start()
            self.arrivals.wait_for(sent(dc1) + self.cut_at.get("dc2", sent(dc2)))
            if second == CUT:
                self.mirrors["dc2"].kill()
                self.cut_at["dc2"] = sent(dc2)

    def said(self, site: str, topic: str) -> list[Record]:
        """What a site's own chain has written."""
        return read_topic(self.chains[site].settings.kafka_bootstrap, topic)

    def said_of(self, site: str, topic: str) -> list[Record]:
        """What the centre's chain has written of the site's machines."""
        found = read_topic(self.centre.settings.kafka_bootstrap, topic)
        return [record for record in found if record.key and parsed(record)["machine"].startswith(f"{site}-")]
