"""What readers see of the promoted generation: Elasticsearch aliases, and the Delta table `current` with all paths.

The aliases are switched by one `update_aliases` call, which Elasticsearch applies atomically; `current` is overwritten
by one commit, so a reader of any version of it sees a single generation.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from elasticsearch import Elasticsearch
from pyspark.sql import DataFrame, SparkSession

from connectors.sinks.elasticsearch_errors import user_errors
from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.indexer.batch import Kind
from jobs.indexer.index_names import index_of
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import Registry

CURRENT = "current"
POINTER = "table string, generation string, path string"


def indices(generation: str, registry: Registry, declared: TopicMap) -> dict[Kind, list[str]]:
    """By kind of document, the aliases of the indices that together have a generation's documents.

    A generation that doesn't run the whole chain uses those of the one that it is based on for the rest. Of a
    topic that several jobs write, each generation has the part of its own jobs.
    """
    kinds = {key: topic.index for key, topic in declared.topics.items() if topic.index}
    found: dict[Kind, list[str]] = {kind: [] for kind in kinds.values()}
    for key, kind in kinds.items():
        for name in registry.lineage(generation):
            writers, jobs = {*JOBS.writers(key)}, {*registry.jobs(name)}
            if writers & jobs:
                found[kind].append(index_of(kind, name))
            if writers <= jobs:
                break
    return found


@user_errors()
def check_indices(client: Elasticsearch, wanted: Mapping[Kind, list[str]]) -> None:
    """Refresh the indices; raises UserError if Elasticsearch doesn't answer or let us, or an index doesn't exist."""
    for index in (index for names in wanted.values() for index in names):
        if not client.indices.exists(index=index):
            raise UserError(f"index {index!r} is not there: has the generation's indexer run?")
        client.indices.refresh(index=index)


@user_errors()
def switch_aliases(client: Elasticsearch, wanted: Mapping[Kind, list[str]]) -> None:
    """Point each alias `kappa-<kind>` at the indices of these aliases and no others, atomically.

    An index that an indexer makes meanwhile gets the aliases of its generation's anchor, a little later.
    """
    actions: list[dict[str, Any]] = []
    for kind, names in wanted.items():
        alias = f"kappa-{kind}"
        present = client.indices.get_alias(name=alias).body if client.indices.exists_alias(name=alias) else {}
        indices = [index for name in names for index in concrete(client, name)]
        actions += [{"add": {"index": index, "alias": alias}} for index in indices]
        actions += [{"remove": {"index": index, "alias": alias}} for index in present if index not in indices]
    client.indices.update_aliases(actions=actions)


def concrete(client: Elasticsearch, alias: str) -> list[str]:
    """The names of a generation's indices of one kind; that of a former version has the alias' name."""
    return list(client.indices.get(index=[alias, f"{alias}.*"], ignore_unavailable=True).body)


def aliases(client: Elasticsearch, declared: TopicMap) -> dict[str, list[str]]:
    """What each alias of the promoted generation leads to: the aliases of generations."""
    names = [f"kappa-{topic.index}" for topic in declared if topic.index]
    return {
        alias: sorted({index.partition(".")[0] for index in client.indices.get_alias(name=alias).body})
        for alias in names
        if client.indices.exists_alias(name=alias)
    }


def locations(generation: str, registry: Registry, settings: Settings) -> list[tuple[str, str, str]]:
    """(table, generation, path) of each parsed Delta table, as the readers of a generation see them."""
    found = []
    for key, topic in load_topics(settings.topics_file).topics.items():
        if topic.archive == "parsed":
            writer = JOBS.writers(key)[0]
            owners = [name for name in registry.lineage(generation) if writer in registry.jobs(name)]
            if not owners:
                continue  # an optional job's, that runs nowhere
            owner = owners[0]
            path = settings.model_copy(update={"generation": owner}).delta_of(key)
            found.append((key, owner, path))
    return found


def switch_tables(spark: SparkSession, rows: Iterable[tuple[str, str, str]], settings: Settings) -> None:
    """Overwrite the table `current` in one commit; `rows` are (table, generation, path)."""
    frame = spark.createDataFrame(list(rows), POINTER).coalesce(1)
    frame.write.format("delta").mode("overwrite").save(pointer(settings))


def pointer(settings: Settings) -> str:
    """The folder or URL of the table `current`."""
    return settings.model_copy(update={"generation": CURRENT}).delta_of("tables")


def read_table(spark: SparkSession, table: str, settings: Settings) -> DataFrame:
    """A Delta table of the promoted generation, e.g. `novelties`.

    Raises UserError if there is no such table.
    """
    rows = spark.read.format("delta").load(pointer(settings)).where(f"table = '{table}'").collect()
    if not rows:
        raise UserError(f"table {table!r}: not in {pointer(settings)}")
    return spark.read.format("delta").load(rows[0].path)
