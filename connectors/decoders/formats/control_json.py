"""An operator's overrides for the detector, one control event a record: JSON of `infra.contract.schemas.CONTROL`.

`kappa detector` writes it, for one machine into the partition of its events, for many into every partition. Its event
time is the broker's, so it is never late, and takes effect at the same window in each replay.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from connectors.decoders import columns
from connectors.decoders.base import Decoder
from infra.contract.schemas import CONTROL

# What version 0.1.0 called another name is read, too: a replay takes what operators said in the last ten years.
_FORMER = {"novelty_record": "told"}
_READ = StructType([*CONTROL.fields, *(StructField(name, StringType()) for name in _FORMER.values())])
_NEEDED = {"feedback": "novelty", "reset": "series", "suppress": "rule", "allow": "rule"}  # by action, beside a machine


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_control (no known action, or one without what it needs), no_machine."""
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), _READ.simpleString()))
    control = _as_of_today(F.col("parsed")["value"])
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


def _as_of_today(control: Column) -> Column:
    """A control event with the names that its fields have now."""
    fields = {name: control[name] for name in CONTROL.names}
    former = {name: F.coalesce(control[name], control[then]) for name, then in _FORMER.items()}
    return F.struct(*(field.alias(name) for name, field in (fields | former).items()))


DECODER = Decoder("control_json", decode)
