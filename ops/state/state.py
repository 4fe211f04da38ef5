"""What a job has learned: its state, read from its checkpoint while it runs or rests."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
from pyspark.sql import SparkSession

from infra.errors import UserError
from jobs.detector.model.protocol import Phase
from jobs.detector.model.series_state import LAYOUT
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.runtime.fold import PARTS
from jobs.runtime.packed_state import Parts
from jobs.runtime.settings import Settings
from ops.savepoints.store import Store

Series = dict[str, Any]

OPERATOR = "state/0/_metadata/v2"  # of a checkpoint: what its state operator is


def shards(spark: SparkSession, checkpoint: str) -> dict[int, Parts]:
    """The packed state of each shard as of the last batch that is done, through Spark's state data source.

    Raises UserError if the checkpoint holds no batch.
    """
    store = Store.of(checkpoint)
    if not store.batches("commits"):
        raise UserError(f"{checkpoint}: no batch is done there; has the job run?")
    # Offset logs of version 2 don't hold what the reader takes from those of version 1.
    spark.conf.set("spark.sql.streaming.internal.stateStore.partitions", partitions(store))
    assert spark.streams.active is not None  # touched: else a session without queries has no state store coordinator
    rows = spark.read.format("statestore").option("stateVarName", PARTS).load(checkpoint).collect()
    found: dict[int, Parts] = defaultdict(dict)
    for row in rows:
        found[int(row["key"]["shard"])][row["user_map_key"]["name"]] = bytes(row["user_map_value"]["part"])
    return dict(found)


def partitions(checkpoint: Store) -> int:
    """In how many parts the state of a query is laid out."""
    _, operator = checkpoint.read(f"{OPERATOR}/{checkpoint.batches(OPERATOR)[-1]}").splitlines()
    return int(orjson.loads(operator)["stateStoreInfo"][0]["numPartitions"])


def moved(operator: bytes, checkpoint: str) -> bytes:
    """A file below OPERATOR as that of another checkpoint: Spark writes there where the state's schemas are."""
    version, text = operator.splitlines()
    described = orjson.loads(text)
    for store in described["stateStoreInfo"]:
        names = [path.rpartition("/state/")[2] for path in store["stateSchemaFilePaths"]]
        store["stateSchemaFilePaths"] = [f"{checkpoint}/state/{name}" for name in names]
    return version + b"\n" + orjson.dumps(described)


def series(spark: SparkSession, settings: Settings) -> list[Series]:
    """Every series that the detector of the settings' generation knows, with its model."""
    found = shards(spark, settings.checkpoint_of("detector"))
    return [one for number, state in sorted(found.items()) for one in _of_shard(number, state)]


def _of_shard(number: int, state: Parts) -> Iterator[Series]:
    detector = Shard(DetectorSettings(), state).detector
    figures = detector.model.figures()
    for row, machine in enumerate(detector.series.machine.tolist()):
        definition, model = detector.series.describe(row), {name: values[row] for name, values in figures.items()}
        novelty = detector.series_tracker.open.get(row)
        yield {
            "machine": detector.machines.names[machine],
            "series": definition.series,
            "kind": definition.kind,
            "unit": definition.unit,
            "shard": number,
            **model,
            "phase": Phase(model["phase"]).name.lower(),
            "novelty": novelty.record if novelty else None,
        }


def matching(known: list[Series], text: str, machine: str | None) -> list[Series]:
    """Those whose series contains `text`, of one machine or of all.

    Raises UserError if there is none.
    """
    found = [one for one in known if text in one["series"] and machine in (None, one["machine"])]
    if not found:
        raise UserError(f"series {text!r}: the detector knows none{f' on {machine}' if machine else ''}")
    return found


def top(known: list[Series], by: str, count: int) -> list[Series]:
    """The `count` series with the greatest value of a field of the model.

    Raises UserError if the model has no such field.
    """
    if by not in LAYOUT:
        raise UserError(f"--by {by}: the model has {', '.join(LAYOUT)}")
    values = np.array([float(one[by]) if by != "phase" else Phase[one[by].upper()] for one in known])
    return [known[at] for at in np.argsort(-values, kind="stable")[:count].tolist()]
