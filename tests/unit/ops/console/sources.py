"""Sources that answer from dictionaries, and are down by name."""

from infra.contract.topics import load_topics
from jobs.runtime.settings import Settings
from ops.console.documents import ELASTICSEARCH
from ops.console.history import History
from ops.console.operations import Operations
from ops.console.reads import SourceDown
from ops.console.running_jobs import Sample
from ops.console.sources import KAFKA
from ops.replay.registry import Registry

MARKUP = '<script>alert("1")</script>&amp;\'"'
ESCAPED = "&lt;script&gt;alert("
JOBS_UP = ("enrichment", "statistics", "detector", "archive", "indexer")


class FakeSources:
    """What the console reads, as the tests say it; it is also its documents and its running jobs."""

    def __init__(self, **facts):
        self.settings, self.applications = Settings(), JOBS_UP
        self.documents = self.running = self
        self.down = set()
        self.lag = {}
        self.said = {name: [] for name in JOBS_UP}
        self.answers = {}  # by the path of a question
        self.found = {}  # by kind: the answer to each search
        self.by_id = {}  # documents, by kind and id
        self.originals = {}
        self.generations = Registry()
        self.controls = []
        self.searches = []
        self.history = History()
        self.operations = Operations({}, None)
        self.saved, self.paces = [], {}
        self.asked, self.said_to_sql = [], {}
        self.forgotten = 0
        vars(self).update(facts)

    def _ask(self, source):
        if source in self.down:
            raise SourceDown(source, "does not answer")

    def topics(self):
        return load_topics()

    def lags(self):
        self._ask(KAFKA)
        return self.lag

    def samples(self, application):
        self._ask(application)
        return self.said[application]

    def answer(self, job, path, **arguments):
        self._ask(job)
        return self.answers.get(path)

    def of(self, generation):
        self.shown = generation
        return self

    def search(self, kind, **query):
        self._ask(ELASTICSEARCH)
        self.searches.append((kind, query))
        return self.found.get(kind, {"hits": {"total": {"value": 0}, "hits": []}})

    def newest(self, kinds):
        self._ask(ELASTICSEARCH)
        return dict.fromkeys(kinds, 1)

    def ends(self, topics):
        self._ask(KAFKA)
        return dict.fromkeys(topics, 1)

    def find(self, kind, identity):
        self._ask(ELASTICSEARCH)
        return self.by_id.get((kind, identity))

    def original(self, source):
        self._ask(KAFKA)
        return self.originals.get((source["topic"], source["partition"], source["offset"]))

    def progress(self, generation):
        self._ask(KAFKA)
        return self.paces.get(generation)

    def savepoints(self):
        return self.saved

    def ask(self, sql):
        self.asked.append(sql)
        if isinstance(self.said_to_sql, Exception):
            raise self.said_to_sql
        return {"tables": [], "missing": [], **(self.said_to_sql if sql else {})}

    def registry(self):
        self._ask(KAFKA)
        return self.generations

    def control(self):
        self._ask(KAFKA)
        return self.controls

    def shown_topics(self):
        return load_topics()

    def forget(self, names=None):
        self.forgotten += 1

    def check(self):
        self._ask(KAFKA)


def sample(name, value, **labels):
    return Sample(name, labels, value)
