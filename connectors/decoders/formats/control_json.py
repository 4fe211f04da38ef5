"""An operator's overrides for the detector, one control event a record: JSON of `infra.contract.schemas.CONTROL`.

`kappa detector` writes it, for one machine into the partition of its events, for many into every partition. Its event
time is the broker's, so it is never late, and takes effect at the same window in each replay.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns
from connectors.decoders.base import Decoder
from infra.contract.schemas import CONTROL

_NEEDED = {"feedback": "novelty", "reset": "series", "suppress": "rule", "allow": "rule"}  # by action, beside a machine


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_control (no known action, or one without what it needs), no_machine."""
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), CONTROL.simpleString()))
    control = F.col("parsed")["value"]
    needed = [F.when(control["action"] == action, control[field]) for action, field in _NEEDED.items()]
    incomplete = F.when(F.coalesce(*needed).isNull(), "not_control")
    event = columns.event(
        time_unix_nano=F.unix_millis("timestamp") * 1_000_000, type=F.lit("control"), body=F.to_json(control)
    )
    return columns.batches(
        parsed,
        machine=columns.nonempty(control["machine"]),
        kind=F.lit("control"),
        events=F.array(event),
        error=F.coalesce(columns.parse_error(F.col("parsed"), F.col("value"), "not_control"), incomplete),
    )


DECODER = Decoder("control_json", decode)
