"""When a generation has caught up, while records go on to arrive."""

from infra.contract.topics import load_topics
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.progress import CatchUp, Watched
from ops.replay.registry import Generation

TOPICS = load_topics()
DETECTOR = ("detector", "incidents", "archive", "indexer")


class Log:
    """The ends of all topics grow with each look; a group's committed offset is what the test says."""

    def __init__(self):
        self.end, self.at = 100, {}

    def ends(self, topics):
        return {(topic, 0): self.end for topic in topics}

    def starts(self, topics):
        return {(topic, 0): 0 for topic in topics}

    def committed(self, group, partitions):
        return {place: self.at.get(group, 0) for place in partitions}


def watched():
    generation = Generation(name="v2", base="live", jobs=DETECTOR)
    topics = JOBS.topics_in(TOPICS, "v2", DETECTOR, TOPICS)
    return Watched(generation, topics, Settings(), Log())


def test_tables_and_indices_are_one_stage_behind_the_chain():
    *chain, last = watched().stages()
    assert chain == [["kappa.v2.detector"], ["kappa.v2.incidents"]]
    assert "kappa.v2.indexer" in last
    assert {name for name in last if name.startswith("kappa.v2.archive.")} >= {"kappa.v2.archive.novelties"}


def test_each_stage_has_to_reach_the_ends_of_the_moment_at_which_its_turn_comes():
    seen = watched()
    log, catch_up = seen.log, CatchUp(seen)
    assert catch_up.look() == "kappa.v2.detector"
    log.end, log.at["kappa.v2.detector"] = 200, 100
    assert catch_up.look() == "kappa.v2.incidents"
    log.at["kappa.v2.incidents"] = 199
    assert catch_up.look() == "kappa.v2.incidents"
    log.at["kappa.v2.incidents"], log.end = 200, 300
    *_, last = seen.stages()
    log.at |= dict.fromkeys(last, 250)
    assert catch_up.look() == last[0]
    log.end = 10_000
    log.at |= dict.fromkeys(last[1:], 300)
    assert catch_up.look() == last[0]
    log.at[last[0]] = 300
    assert catch_up.look() is None
